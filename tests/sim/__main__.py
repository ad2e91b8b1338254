"""Runs `tests.sim.program`."""

from tests.sim.program import main

if __name__ == "__main__":
    raise SystemExit(main())
