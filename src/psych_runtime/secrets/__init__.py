"""Where secrets are kept: in the environment, in files, in a mapping."""
