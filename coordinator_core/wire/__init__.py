"""Bytes of the Kafka protocol ↔ requests and responses of the coordinator. Nothing else knows the library that frames them."""
