"""Stores on real servers for tests: tables of this process, emptied for each test."""
