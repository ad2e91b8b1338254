"""What the program prints when a part cannot be measured."""

from collections.abc import Sequence

import pytest

from tests.bench import program
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.sizes import Sizes


def good(_: Sizes, __: Guard) -> Sequence[Line]:
    """Return a line."""
    return [Line(id="good", title="what could be measured", unit="ms", ours=[1.5])]


def bad(_: Sizes, __: Guard) -> Sequence[Line]:
    """Fail."""
    raise RuntimeError("the server has gone away")


def test_what_was_measured_is_printed_whatever_fails_behind_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the failure is not hidden."""
    parts = {"good": program.Part(good), "bad": program.Part(bad)}
    monkeypatch.setattr(program, "PARTS", parts)
    with pytest.raises(RuntimeError, match="gone away"):
        program.main([])
    assert "good: what could be measured" in capsys.readouterr().out
