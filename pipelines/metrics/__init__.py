"""The text of /metrics, made from a snapshot of the tables. The exposition rules are those of docs/metrics.md."""
