"""`grouplake demo --kafka`: two coordinators that share a log on a Kafka broker, one of which is killed."""
