"""Tools: the registry, what a call may say, how it is run, and what it brought."""
