"""The server: its routes, responses, rendered pages, and the thread beside a job."""
