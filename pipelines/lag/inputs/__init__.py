"""Inputs of lag besides offsets: settings of topics, counts of records, append times, open transactions."""
