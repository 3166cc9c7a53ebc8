"""Members of groups over TCP, one or a crowd."""
