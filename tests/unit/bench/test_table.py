"""The table and the document say each line once, with its yardstick, ratio, bound and spread."""

from tests.bench.figures import Line
from tests.bench.guard import Guard, Spin
from tests.bench.table import document, table

LINES = [
    Line(
        id="fold",
        title="fold a record",
        unit="µs",
        beside="pydantic",
        ours=[30.0, 32.0, 31.0],
        yardstick=[10.0, 10.0, 10.0],
        bound=2.0,
    ),
    Line(
        id="rate",
        title="Runs",
        unit="runs/s",
        beside="by hand",
        ours=[1200.0],
        yardstick=[4800.0],
        rate=True,
    ),
    Line(id="commits", title="of a Run", unit="", ours=[6.0, 6.0], limit=5.0),
    Line(
        id="pickup",
        title="a Run",
        unit="ms",
        beside="NOTIFY",
        ours=[6.0],
        yardstick=[1.5],
        bound=5.0,
        limit=10.0,
    ),
]


def test_bench_the_table_has_a_row_for_each_line_and_names_the_yardsticks() -> None:
    """As people read it."""
    assert table(LINES).splitlines() == [
        "what                        yardstick          ratio      bound         at best  spread",
        "---------------------------------------------------------------------------------------",
        "fold: fold a record     31         10      µs  3.10x         2x  ABOVE    3.00x      3%",
        "rate: Runs           1,200      4,800  runs/s  4.00x                      4.00x      0%",
        "commits: of a Run        6                                    5  ABOVE               0%",
        "pickup: a Run            6        1.5      ms  4.00x  5x, 10 ms     ok    4.00x      0%",
        "",
        "beside:",
        "  pydantic: fold",
        "  by hand: rate",
        "  NOTIFY: pickup",
    ]


def test_bench_a_table_of_counts_alone_stands_beside_nothing() -> None:
    """No heading without anything below it."""
    counts = [line for line in LINES if not line.beside]
    assert table(counts).splitlines()[-1].startswith("commits: of a Run")


def test_bench_the_document_has_the_same_in_json() -> None:
    """With what it was taken on, and whether to believe it."""
    guard = Guard([Spin(0.01, 0.01)])
    kept = document(LINES, machine={"cores": 2}, loads=(0.5, 1.5), guard=guard, quick=False)
    assert kept["machine"] == {"cores": 2}
    assert (kept["load_start"], kept["load_end"]) == (0.5, 1.5)
    assert (kept["quick"], kept["too_busy"]) == (False, None)
    assert kept["lines"] == [
        {
            "id": "fold",
            "title": "fold a record",
            "unit": "µs",
            "value": 31.0,
            "beside": "pydantic",
            "yardstick": 10.0,
            "ratio": 3.1,
            "ratio_at_best": 3.0,
            "bound": 2.0,
            "limit": None,
            "verdict": "ABOVE",
            "spread": 0.032,
            "steady": True,
            "rounds": 3,
        },
        {
            "id": "rate",
            "title": "Runs",
            "unit": "runs/s",
            "value": 1200.0,
            "beside": "by hand",
            "yardstick": 4800.0,
            "ratio": 4.0,
            "ratio_at_best": 4.0,
            "bound": None,
            "limit": None,
            "verdict": None,
            "spread": 0.0,
            "steady": True,
            "rounds": 1,
        },
        {
            "id": "commits",
            "title": "of a Run",
            "unit": "",
            "value": 6.0,
            "beside": None,
            "yardstick": None,
            "ratio": None,
            "ratio_at_best": None,
            "bound": None,
            "limit": 5.0,
            "verdict": "ABOVE",
            "spread": 0.0,
            "steady": True,
            "rounds": 2,
        },
        {
            "id": "pickup",
            "title": "a Run",
            "unit": "ms",
            "value": 6.0,
            "beside": "NOTIFY",
            "yardstick": 1.5,
            "ratio": 4.0,
            "ratio_at_best": 4.0,
            "bound": 5.0,
            "limit": 10.0,
            "verdict": "ok",
            "spread": 0.0,
            "steady": True,
            "rounds": 1,
        },
    ]


def test_bench_a_busy_machine_is_in_the_document() -> None:
    """Whoever reads it later must know."""
    guard = Guard([Spin(0.01, 0.02)])
    kept = document([], machine={}, loads=(9.0, 9.0), guard=guard, quick=True)
    assert kept["too_busy"] == "a loop waited 100% of its time for others"
