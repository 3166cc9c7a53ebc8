"""All clusters."""
