"""The tests of Psych Runtime."""
