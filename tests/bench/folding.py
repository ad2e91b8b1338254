"""What reading a log costs, beside pydantic alone reading the same records."""

from collections.abc import Callable, Iterator, Sequence

from pydantic import ConfigDict, TypeAdapter

from psych_runtime import Record
from psych_runtime.core.codec import Entry, decode_anew, record_text
from psych_runtime.core.fold import fold
from psych_schema.store import RecordRow
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.rounds import cost_of, in_turn
from tests.bench.running import read_log
from tests.bench.sizes import Sizes

__all__ = ["measure"]


async def measure(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the fold of records that were read, and reading and folding together."""
    return list(_measure(await read_log(sizes.fold_turns), sizes, guard))


def _measure(rows: Sequence[RecordRow], sizes: Sizes, guard: Guard) -> Iterator[Line]:
    texts = [record_text(row) for row in rows]
    entries = [decode_anew(row) for row in rows]
    adapter = TypeAdapter[Record](Record, config=ConfigDict(strict=True, allow_inf_nan=False))

    def validate() -> None:
        for text in texts:
            adapter.validate_json(text)

    def each(act: Callable[[], object]) -> Callable[[], float]:
        return lambda: cost_of(act).cpu_seconds / len(rows) * 1e6

    pydantic, folded, both = in_turn(
        guard,
        sizes.fold_rounds,
        each(validate),
        each(lambda: fold(entries)),
        each(lambda: fold(_decoded(rows))),
    )
    size = sum(map(len, texts)) / len(texts)
    beside = f"validate_json of the same {len(rows)} records of {size:.0f} bytes"
    yield Line(
        id="fold",
        title="fold a record that was read",
        unit="µs CPU",
        beside=beside,
        ours=folded,
        yardstick=pydantic,
        bound=2.0,
    )
    yield Line(
        id="decode_and_fold",
        title="read, check both digests, fold",
        unit="µs CPU",
        beside=beside,
        ours=both,
        yardstick=pydantic,
    )


def _decoded(rows: Sequence[RecordRow]) -> Iterator[Entry]:
    return map(decode_anew, rows)
