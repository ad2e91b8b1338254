"""What an import costs a fresh process, beside `import pydantic`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from tempfile import TemporaryDirectory

from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.rounds import in_turn
from tests.bench.sizes import Sizes

__all__ = ["measure"]

_PYDANTIC = "import pydantic"
_PACKAGE = "import psych_runtime"
_EVERYTHING = "import psych_runtime; psych_runtime.session"


def measure(sizes: Sizes, guard: Guard) -> Iterator[Line]:
    """Yield the package alone, and all that a first program loads."""
    statements = (_PYDANTIC, _PACKAGE, _EVERYTHING)
    with TemporaryDirectory(prefix="psych-bench-") as cache:
        acts = [partial(_import, statement, cache) for statement in statements]
        pydantic, package, everything = in_turn(guard, sizes.import_rounds, *acts)
    yield Line(
        id="import",
        title=_PACKAGE,
        unit="ms CPU",
        beside=_PYDANTIC,
        ours=package,
        yardstick=pydantic,
        bound=2.5,
    )
    yield Line(
        id="import_session",
        title=_EVERYTHING,
        unit="ms CPU",
        beside=_PYDANTIC,
        ours=everything,
        yardstick=pydantic,
    )


def _import(statement: str, cache: str) -> float:
    """Return the processor time of `statement` in a process of its own, in ms.

    Compiled modules are kept in `cache`, filled by the rehearsal: an installed package has them.
    """
    program = (
        "from time import process_time as clock\n"
        f"begun = clock()\n{statement}\nprint((clock() - begun) * 1000)"
    )
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)
