"""The topics that groups read."""
