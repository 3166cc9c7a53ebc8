"""New tables from the log or from old tables, for changes of the layout that cannot be made in place."""
