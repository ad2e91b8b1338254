"""`python -m codegen` writes generated/; `--lint` only judges schema/."""

import argparse
import sys
from pathlib import Path

from codegen import additive, lint, write
from codegen.source import Source
from codegen.tree import SchemaError

__all__: list[str] = []

_ROOT = Path(__file__).parent.parent


def main() -> None:
    """Run one command; problems go to stderr and make the status 1."""
    parser = argparse.ArgumentParser(prog="python -m codegen", description=__doc__)
    parser.add_argument("--schema", type=Path, default=_ROOT / "schema")
    parser.add_argument("--output", type=Path, default=_ROOT / "generated")
    parser.add_argument("--lint", action="store_true", help="judge the sources, write nothing")
    parser.add_argument("--release", metavar="VERSION", help="freeze the published schemas")
    options = parser.parse_args()
    try:
        problems = _run(options.schema, options.output, options.release, write_it=not options.lint)
    except SchemaError as error:
        problems = [str(error)]
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


def _run(schema: Path, output: Path, version: str | None, *, write_it: bool) -> list[str]:
    source = Source.load(schema)
    problems = lint.lint(source) or additive.check(source)
    if write_it and not problems:
        write.generate(source, output)
        if version is not None:
            additive.release(output / "schema", schema / "released", version)
    return problems


if __name__ == "__main__":
    main()
