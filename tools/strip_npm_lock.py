"""Takes out of package-lock.json what `npm ci` does not read and what names a host.

Run by `make lock`. The lock then holds names, versions and integrity hashes only, so any
registry that serves the same bytes will do.
"""

import json
import sys
from pathlib import Path

UNREAD = frozenset({"deprecated", "funding", "resolved"})


def strip(lock: str) -> str:
    """Return the text of `lock` without the fields of `UNREAD`, formatted as npm does it."""
    document = json.loads(lock)
    for package in document["packages"].values():
        for field in UNREAD & package.keys():
            del package[field]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Rewrite the lock files named on the command line."""
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(strip(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
