"""The store in a SQLite file, over the standard library's driver."""
