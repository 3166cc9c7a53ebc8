"""The coordinator as a server: connections, one event loop per log partition, health and metrics."""
