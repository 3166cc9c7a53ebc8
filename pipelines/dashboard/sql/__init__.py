"""SQL from the network: each query in a process of its own, with limits."""
