"""Where Runs are kept: in memory, in a SQLite file, and a contract suite for any other place."""
