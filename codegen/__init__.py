"""Turns schema/ into everything that is derived from it."""
