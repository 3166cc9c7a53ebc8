"""Lag of groups in the tables: samples of end offsets, and the table `lag` that follows from them."""
