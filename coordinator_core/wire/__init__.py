"""Bytes of the Kafka protocol ↔ requests and responses of the coordinator: the one place that knows the library that frames them."""
