"""What the parts of one test run tell together, whichever processes they run in."""

import json
import os
from collections.abc import Iterable, Mapping
from typing import Final

import pytest

__all__ = ["Together"]

type Counts = Mapping[str, Mapping[str, int]]


class Together:
    """Counts of parts whose names are known; the part that ends last is given them all."""

    def __init__(
        self, factory: pytest.TempPathFactory, title: str, parts: Iterable[object]
    ) -> None:
        folder = factory.getbasetemp()
        if "PYTEST_XDIST_WORKER" in os.environ:
            folder = folder.parent
        self._folder: Final = folder / title
        self._folder.mkdir(exist_ok=True)
        self._files: Final = [self._folder / f"{part}.json" for part in parts]

    def add(self, part: object, counts: Counts) -> list[Counts] | None:
        """Keep the counts of a part; return those of all, or None while some are to come."""
        ready = self._folder / f"{part}.new"
        ready.write_text(json.dumps({title: dict(found) for title, found in counts.items()}))
        ready.rename(self._folder / f"{part}.json")
        if not all(file.exists() for file in self._files):
            return None
        return [json.loads(file.read_text()) for file in self._files]
