"""Server-sent events: one for each new batch of a cluster."""
