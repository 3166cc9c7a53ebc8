"""The coordinator as a server: connections, one partition loop per log partition, health and metrics."""
