"""One group: status, history, events, and the rows of a tab."""
