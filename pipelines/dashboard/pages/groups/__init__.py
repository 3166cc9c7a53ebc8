"""The groups of a cluster, filtered and sorted."""
