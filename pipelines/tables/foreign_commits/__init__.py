"""Commits of other programs to the tables: which of them stay, and which of them Grouplake cannot read."""
