"""Where large bytes are kept: in memory, in files, in S3, and a contract suite for other places."""
