"""Real worker processes on real servers, with everything done to them that happens in practice.

`python -m tests.chaos` kills and stops workers, restarts the database, breaks connections, and
then holds every Run's log against what the tools really did (RUN-1, RUN-2, ST-2, ST-9).
"""
