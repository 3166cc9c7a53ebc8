"""Backups of the tables: copies of the files of one batch, with checksums, and their restore."""
