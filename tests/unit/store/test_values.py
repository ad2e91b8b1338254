"""Small values: the end of a prefix, revisions that never come again, and names that are kept."""

import pytest

from psych_runtime._system import System
from psych_runtime.ports.store import MAX_VALUE_KEY_CHARACTERS
from psych_runtime.store._values import behind_all, first_revision
from psych_runtime.store.dynamodb._names import value_key

_LAST = "\U0010ffff"


@pytest.mark.parametrize(
    ("prefix", "wanted"),
    [
        ("a", "b"),
        ("az", "a{"),
        ("\x7f", "\x80"),
        ("\ud7ff", "\ue000"),
        ("\uffff", "\U00010000"),
        (f"a{_LAST}", "b"),
        (f"a{_LAST}{_LAST}", "b"),
        ("", _LAST * (MAX_VALUE_KEY_CHARACTERS + 1)),
        (_LAST, _LAST * (MAX_VALUE_KEY_CHARACTERS + 1)),
    ],
)
def test_st_1_the_end_of_a_prefix_is_behind_all_that_begin_with_it(
    prefix: str, wanted: str
) -> None:
    """It is a text that every store takes: it has UTF-8, which a surrogate has not."""
    assert behind_all(prefix) == wanted
    assert prefix + _LAST * (MAX_VALUE_KEY_CHARACTERS - len(prefix)) < wanted
    wanted.encode()


def test_r_1_first_revisions_differ_and_are_exact_in_json() -> None:
    """A number above 2**53 would be another one to a reader in JavaScript."""
    revisions = [first_revision(System()) for _ in range(1000)]
    assert len(set(revisions)) == 1000
    assert min(revisions) >= 1
    assert max(revisions) <= 2**52


def test_st_3_a_key_in_dynamodb_sorts_as_it_is() -> None:
    """The generated key escapes # and %, so that $ would come before both of them."""
    keys = [value_key(tenant="a#b", kind="memory", key=key) for key in ("#", "$", "%", "%23")]
    assert {key["pk"] for key in keys} == {"kv#a%23b#memory"}
    assert [key["sk"] for key in keys] == ["#", "$", "%", "%23"]
