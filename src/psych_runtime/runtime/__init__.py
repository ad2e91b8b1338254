"""The engine: worker, supervisor, attempt, journal, agent loop, calls."""
