"""The state of a cluster at a time: the newest batch from memory, an earlier one from the tables."""
