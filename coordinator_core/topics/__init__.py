"""Rules of topics with data: names, configs, and checks of the batches that producers send."""
