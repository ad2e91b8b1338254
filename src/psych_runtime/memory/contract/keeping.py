"""What is remembered comes back, newest first, by the words in it, until it is forgotten."""

from typing import Final

from psych_runtime.memory.contract._check import ANNA, Harness, entries
from psych_runtime.ports.checks import check, same

__all__ = [
    "an_entry_comes_back_as_it_was_given",
    "every_word_of_a_query_must_occur",
    "the_newest_come_first_up_to_the_limit",
    "the_same_key_again_is_one_entry_and_the_newest",
    "what_is_forgotten_is_gone",
]

_TEXTS: Final = (
    "tea, no milk",
    "",
    'o\'hara said "hi" \\ $1 :tenant %s {prefix}\n\t\r ',
    "\U0001f9e0 acme\u0301 \u2028 \x01\x7f",
    '{"a": ["b", null]}',
)


@check("R-1", "LOG-5", methods=("remember", "recall"))
async def an_entry_comes_back_as_it_was_given(harness: Harness) -> None:
    """To the last byte, for another handle, too; its instant is in UTC."""
    async with harness.open() as memory, harness.open() as other:
        same(await other.recall(ANNA), [], "what nobody has said")
        for text in _TEXTS:
            key = text or "empty"
            await memory.remember(ANNA, key, text)
            (newest,) = await other.recall(ANNA, limit=1)
            same((newest.key, newest.value), (key, text), "an entry")
            offset = newest.remembered_at.utcoffset()
            same(offset is not None and not offset, True, "an instant in UTC")
        wanted = [(text or "empty", text) for text in reversed(_TEXTS)]
        same(await entries(other), wanted, "all entries")


@check("R-1", methods=("remember", "recall"))
async def the_same_key_again_is_one_entry_and_the_newest(harness: Harness) -> None:
    """Whatever is said under it, the same thing, too: repeating is safe (R-20)."""
    async with harness.open() as memory:
        for key, value in (("a", "1"), ("b", "2"), ("A", "3"), ("a", "4"), ("b", "2")):
            await memory.remember(ANNA, key, value)
        wanted = [("b", "2"), ("a", "4"), ("A", "3")]
        same(await entries(memory), wanted, "entries when keys came again")


@check("R-1", methods=("remember", "recall"))
async def the_newest_come_first_up_to_the_limit(harness: Harness) -> None:
    """Twenty where no limit is given."""
    async with harness.open() as memory:
        for number in range(25):
            await memory.remember(ANNA, f"{number}", f"number {number}")
        wanted = [f"{number}" for number in reversed(range(25))]
        for limit in (1, 2, 24, 25, 26, 1000):
            found = await memory.recall(ANNA, limit=limit)
            same([entry.key for entry in found], wanted[:limit], f"at most {limit}")
        same([entry.key for entry in await memory.recall(ANNA)], wanted[:20], "without a limit")
        found = await memory.recall(ANNA, "number 1", limit=3)
        same([entry.key for entry in found], ["21", "19", "18"], "at most 3 that a query finds")


@check("R-1", methods=("remember", "recall"))
async def every_word_of_a_query_must_occur(harness: Harness) -> None:
    """In the key or in the value, whatever its case; no character is a pattern."""
    said = {
        "drink": "Tea, no MILK",
        "Street": "Hauptstra\u00dfe 5",
        "milk": "oat, 100% of it",
        "path": "C:\\a_b.*",
        "greek": "\u039f\u0394\u039f\u03a3",
    }
    queries: dict[str | None, list[str]] = {
        None: ["greek", "path", "milk", "Street", "drink"],
        "": ["greek", "path", "milk", "Street", "drink"],
        " \n ": ["greek", "path", "milk", "Street", "drink"],
        "milk": ["milk", "drink"],
        "tea  MILK": ["drink"],
        "milk drink tea": ["drink"],
        "il": ["milk", "drink"],
        "tea coffee": [],
        "STRASSE street": ["Street"],
        "\u03bf\u03b4\u03bf\u03c2": ["greek"],
        "%": ["milk"],
        "_": ["path"],
        ".*": ["path"],
        "a_b.* c:\\": ["path"],
        "aXb": [],
        "' OR 1=1 --": [],
    }
    async with harness.open() as memory:
        for key, value in said.items():
            await memory.remember(ANNA, key, value)
        for query, wanted in queries.items():
            found = [key for key, _ in await entries(memory, query=query)]
            same(found, wanted, f"what {query!r} finds")


@check("R-1", methods=("remember", "forget", "recall"))
async def what_is_forgotten_is_gone(harness: Harness) -> None:
    """For every handle, and nothing besides; it can be remembered anew."""
    async with harness.open() as memory, harness.open() as other:
        same(await memory.forget(ANNA, "a"), False, "forgetting what nobody has said")
        for key in ("a", "b", "a "):
            await memory.remember(ANNA, key, "x")
        same(await memory.forget(ANNA, "a"), True, "forgetting an entry")
        same(await entries(other), [("a ", "x"), ("b", "x")], "the others")
        same(await other.forget(ANNA, "a"), False, "forgetting it again")
        same(await other.forget(ANNA, "B"), False, "forgetting a key in another case")
        await memory.remember(ANNA, "a", "y")
        same(await entries(other), [("a", "y"), ("a ", "x"), ("b", "x")], "remembered anew")
