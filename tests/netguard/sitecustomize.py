"""Puts the network guard into each Python that a test starts; conftest.py sets PYTHONPATH."""

import psych_netguard

psych_netguard.install()
