"""State of idempotent and transactional producers of a partition (`ProducerStateManager`): checks, transactions, snapshots."""
