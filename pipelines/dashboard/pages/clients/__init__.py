"""The client ids of members, with hosts, groups and lag."""
