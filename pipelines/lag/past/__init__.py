"""Lag and status at a past time, from the histories in the tables."""
