"""Which texts are kept (ST-2)."""

from psych_runtime.store._kept import Kept


def test_st_2_a_text_is_its_tenants() -> None:
    """The same hash of another tenant is another text."""
    kept = Kept()
    kept.put("acme", "a", "ours")
    assert kept.get("acme", "a") == "ours"
    assert kept.get("globex", "a") is None


def test_st_2_what_was_asked_for_longest_ago_makes_room() -> None:
    """By count, and by characters; one that is too long for all is not kept."""
    kept = Kept(texts=2, characters=10)
    kept.put("acme", "a", "aaaa")
    kept.put("acme", "b", "bbbb")
    assert kept.get("acme", "a") == "aaaa"
    kept.put("acme", "c", "c")
    assert [kept.get("acme", hash) for hash in "abc"] == ["aaaa", None, "c"]
    kept.put("acme", "d", "dddddddd")
    assert [kept.get("acme", hash) for hash in "acd"] == [None, "c", "dddddddd"]
    kept.put("acme", "e", "e" * 11)
    assert [kept.get("acme", hash) for hash in "cde"] == [None, None, None]


def test_st_2_a_text_that_is_kept_counts_once() -> None:
    """However often it is found."""
    kept = Kept(characters=10)
    for _ in range(9):
        kept.put("acme", "a", "aaaa")
    kept.put("acme", "b", "bbbb")
    assert [kept.get("acme", hash) for hash in "ab"] == ["aaaa", "bbbb"]
