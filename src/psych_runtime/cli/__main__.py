"""`python -m psych_runtime.cli` is `psych`."""

from psych_runtime.cli import main

main()
