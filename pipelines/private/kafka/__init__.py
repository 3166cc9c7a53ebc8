"""A real Kafka broker of any generation on this machine, without containers: for the demo and as the oracle of the tests."""
