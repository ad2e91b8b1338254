"""`python -m tests.bench [--quick] [--json PATH] [names...]`: measure and print the table."""

import sys

if __name__ == "__main__":
    # loaded here: every process of a part comes by, and needs its own part only
    from tests.bench.program import main

    main(sys.argv[1:])
