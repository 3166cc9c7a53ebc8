"""Histories of invented groups as tables: a log written record by record, and applied and sampled as a job does it.

Times are arguments. `write_history` writes two days of a shop with planted incidents; docs/sql_scenario.py uses the same parts.
"""
