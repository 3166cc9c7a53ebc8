"""Alerts that are pending or firing, those that ended, and deliveries."""
