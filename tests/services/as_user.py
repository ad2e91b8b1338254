"""`python -m tests.services.as_user UID GID ...`: the command line, as another user would run it.

All that it takes is loaded before the rights are given up: others need not be able to read where
this Python and the repository are.
"""

import encodings.idna  # noqa: F401  loaded here: a connection by a host's name needs it
import os
import sys

from tests.services.__main__ import main


def _become(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


if __name__ == "__main__":
    _become(int(sys.argv[1]), int(sys.argv[2]))
    sys.exit(main(sys.argv[3:]))
