"""Names as parts of a path: each has one form, no two meet, and each form is read back."""

import re

from hypothesis import given
from hypothesis import strategies as st

from psych_runtime.blob._keys import ends_name, is_hash, owner_of, parts_of
from psych_runtime.ports.blob import BlobOwner

NAMES = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=80),
    st.text("aA-_.e/=\u00e9", max_size=6),
    st.text("aA", min_size=98, max_size=260),
)
PARTS = st.lists(
    st.one_of(
        st.text("nme-a2b7z", max_size=5),
        st.builds(lambda mark, rest: mark + rest, st.sampled_from(["n-", "m-", "e-"]), NAMES),
    ),
    max_size=5,
).map(tuple)


def test_sec_3_a_plain_name_stays_readable() -> None:
    """And any other is base32, marked as such."""
    assert parts_of(BlobOwner("acme", "run_1")) == ("n-acme", "n-run_1")
    assert parts_of(BlobOwner("Acme", "")) == ("e-ifrw2zi", "e-")
    assert parts_of(BlobOwner("../x", "e-")) == ("e-fyxc66a", "n-e-")
    assert parts_of(BlobOwner("A" * 130, ".")) == (
        "m-" + "ifaucqkb" * 25,
        "e-ifaucqkb",
        "e-fy",
    )


@given(NAMES, NAMES)
def test_sec_3_a_path_is_safe_and_is_read_back(tenant: str, run_id: str) -> None:
    """Every part is one that each file system and service keeps as it is."""
    owner = BlobOwner(tenant, run_id)
    parts = parts_of(owner)
    assert all(re.fullmatch(r"[nme]-[a-z0-9_-]{0,200}", part) for part in parts)
    assert sum(map(ends_name, parts)) == 2
    assert ends_name(parts[-1])
    assert owner_of(parts) == owner


@given(NAMES, NAMES, NAMES, NAMES)
def test_sec_3_two_owners_never_meet(a: str, b: str, c: str, d: str) -> None:
    """Neither path is the other, nor leads into it."""
    one, other = BlobOwner(a, b), BlobOwner(c, d)
    first, second = parts_of(one), parts_of(other)
    assert (first == second) == (one == other)
    if one != other:
        assert first[: len(second)] != second


@given(PARTS)
def test_sec_3_what_is_read_back_has_this_path(parts: tuple[str, ...]) -> None:
    """Foreign folders are nobody's: no path is taken for an owner that has another."""
    owner = owner_of(parts)
    assert owner is None or parts_of(owner) == parts


def test_sec_3_another_form_of_a_name_is_nobodys() -> None:
    """Padding, cases, cuts elsewhere, stray bits and bytes that are no text."""
    run = "n-run"
    for parts in (
        (),
        (run,),
        (run, run, run),
        ("e-mfrgg", run),
        ("e-IFRW2ZI", run),
        ("e-ifrw2zi=", run),
        ("e-ifrw2zj", run),
        ("e-1", run),
        ("e-74", run),
        ("m-ifrw", "e-2zi", run),
        ("n-Acme", run),
        ("n-", run),
        (f"n-{'a' * 101}", run),
        ("n-\udc80", run),
        ("e-\udc80", run),
        ("e-\u0663", run),
        ("x-acme", run),
        ("", run),
    ):
        assert owner_of(parts) is None
    assert owner_of(("e-ifrw2zi", run)) == BlobOwner("Acme", "run")


def test_r_23_a_hash_is_64_lower_case_digits() -> None:
    """And nothing that Python takes for digits or letters besides."""
    assert is_hash("0123456789abcdef" * 4)
    for text in ("", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "a" * 64 + "\n", "\u0663" * 64):
        assert not is_hash(text)
