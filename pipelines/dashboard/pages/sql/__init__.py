"""A query with its result as a table and a chart."""
