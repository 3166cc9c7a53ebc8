"""The offsets topic: records by log partition, groups that write, quarantine, batches."""
