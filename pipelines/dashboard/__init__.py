"""`grouplake dashboard`: an HTTP server that answers from snapshots of the tables in memory."""
