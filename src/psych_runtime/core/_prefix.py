"""The beginning of a list that only grows, shown without being copied (LOG-2)."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

__all__ = ["Prefix"]

type _Slice = slice[int | None, int | None, int | None]


class Prefix[T](Sequence[T]):
    """The items that `items` has now, as a tuple of them would be; what is appended is not seen.

    To make one costs the same for ten items and for ten thousand. Whoever owns the list must not
    replace or remove what is in it.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T]) -> None:
        self._items = items
        self._length = len(items)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: _Slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | _Slice) -> T | tuple[T, ...]:
        if isinstance(place, slice):
            start, stop, step = place.indices(self._length)
            return tuple([self._items[at] for at in range(start, stop, step)])
        at = place + self._length if place < 0 else place
        if not 0 <= at < self._length:
            raise IndexError(place)
        return self._items[at]

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._length)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Prefix | tuple):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[T, ...]], tuple[tuple[T, ...]]]:
        return tuple, (tuple(self),)  # a copy needs no list that grows
