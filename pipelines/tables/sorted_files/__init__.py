"""The files of merged tables: small and sorted by key, so that a batch replaces only those with its groups."""
