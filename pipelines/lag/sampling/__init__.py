"""Samples of end offsets and of the cluster: when they are taken, and the batch that each one writes."""
