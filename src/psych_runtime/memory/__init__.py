"""Where agents remember: in this process, in the store, and a contract suite for other places."""
