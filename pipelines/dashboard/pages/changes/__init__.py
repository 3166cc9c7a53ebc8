"""Changes between two times."""
