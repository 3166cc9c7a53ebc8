"""The node: start and shutdown of the process, its log, /health and /metrics."""
