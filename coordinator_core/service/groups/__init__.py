"""The group coordinator as a service, and what brokers check before a request reaches it."""
