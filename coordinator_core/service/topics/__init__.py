"""Topics with data: Produce, Fetch, administration, and the checks of what producers send."""
