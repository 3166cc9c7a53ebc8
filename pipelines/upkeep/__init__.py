"""Maintenance of the tables of a running job: at an interval, and on request."""
