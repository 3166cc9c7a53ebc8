"""Burrow's HTTP API, version 3."""
