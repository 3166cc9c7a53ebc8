"""The groups of a cluster that need attention."""
