"""The server socket, its connections, and the dispatch of requests."""
