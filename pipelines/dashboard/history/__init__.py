"""What happened to a group, topic or client in a span of time, from the histories in the tables."""
