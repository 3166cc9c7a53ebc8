"""The tables of the newest batch in memory, for programs that answer many requests from them."""
