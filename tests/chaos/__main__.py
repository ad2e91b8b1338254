"""Runs `tests.chaos.program`."""

from tests.chaos.program import main

if __name__ == "__main__":
    raise SystemExit(main())
