"""Geometry of charts, in the units of their SVG. Templates draw it, so no markup is made here."""
