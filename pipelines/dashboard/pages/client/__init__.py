"""One client id or host: its members, and its stays in groups."""
