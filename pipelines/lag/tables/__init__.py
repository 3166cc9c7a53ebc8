"""Rows of the tables that follow from samples: lag, its history and trend, status of groups and partitions."""
