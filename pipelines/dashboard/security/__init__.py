"""Access to the server: TLS, proxies, authentication, roles, and headers of every response."""
