"""A server of static pages on 127.0.0.1, with the Content Security Policy of the dashboard."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

_POLICY = "default-src 'self'; style-src 'self'; img-src 'self' data:; frame-ancestors 'none'"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".html": "text/html; charset=utf-8"}


@contextmanager
def page_server(files: Mapping[str, str]) -> Iterator[str]:
    """Serve texts by path, such as `/page.html`, and yield the server's address. `files` may change meanwhile."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = files.get(self.path.partition("?")[0])
            body = ("Not found" if text is None else text).encode()
            self.send_response(404 if text is None else 200)
            self.send_header(
                "Content-Type", next((kind for end, kind in _TYPES.items() if self.path.endswith(end)), "text/plain")
            )
            self.send_header("Content-Security-Policy", _POLICY)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: a failing test prints the browser's errors."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
