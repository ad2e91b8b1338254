"""What the engine costs, each figure beside a yardstick of the same run; `make bench`.

Nothing here is judged by a test: figures are read by people, in docs/notes/performance.md.
"""
