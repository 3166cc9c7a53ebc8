"""One topic: ages by group and partition, growth of the log, replicas."""
