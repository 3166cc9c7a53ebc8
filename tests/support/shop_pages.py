"""The pages of one cluster without a socket: requests go to the application, for a viewer that a test may change."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from html.parser import HTMLParser
from typing import Any

import httpx
from fastapi import Request
from starlette.middleware.base import RequestResponseEndpoint
from starlette.responses import Response

from pipelines.dashboard.live.streams import Streams
from pipelines.dashboard.options import dashboard_options
from pipelines.dashboard.security.viewer import LOCAL_VIEWER
from pipelines.dashboard.server.app import make_app
from pipelines.metrics.site import Site, utc_now
from pipelines.query.engine import Snapshot
from pipelines.runtime.configuration import load_configuration


class ShopPages:
    """The pages of the cluster `east`, whose tables are under `root`."""

    def __init__(
        self, root: str, *, tables: str | None = None, clock: Callable[[], datetime] = utc_now, **dashboard: Any
    ) -> None:
        """`tables` is the value of `--tables`, by default `east=ROOT`.

        `clock` is the time of the server, `dashboard` has keys of the section [dashboard].
        """
        self.root = root
        section = load_configuration(None)
        given = [tables or f"east={root}"]
        options = dashboard_options(given, None, {**section.dashboard, **dashboard}, section.metrics, section.lag)
        self.site = Site(options.roots, options.metrics, options.poll_seconds, print, clock)
        self.site.refresh()
        self.viewer = LOCAL_VIEWER
        #: False: an unexpected error is answered as by a real server.
        self.raises_errors = True
        app = make_app(self.site, options, Streams(options.roots, 1, 1))

        @app.middleware("http")
        async def authenticated(request: Request, answer: RequestResponseEndpoint) -> Response:
            request.state.viewer = self.viewer
            return await answer(request)

        self._app = app

    def get(self, page: str = "", **headers: str) -> httpx.Response:
        """The answer for a page of the cluster."""
        return self.at(f"/c/east/{page}", **headers)

    def at(self, path: str, **headers: str) -> httpx.Response:
        """The answer for a path."""

        async def answer() -> httpx.Response:
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(self._app, self.raises_errors), base_url="http://127.0.0.1"
            ) as client:
                names = {name.replace("_", "-"): value for name, value in headers.items()}
                return await client.get(path, headers=names)

        return asyncio.run(answer())

    def json(self, page: str) -> dict[str, Any]:
        """The model of a page, which has to exist."""
        path, _, query = page.partition("?")
        answer = self.get(f"{path}.json?{query}")
        assert answer.status_code == 200, answer.text
        model: dict[str, Any] = answer.json()
        return model

    def html(self, page: str) -> "ParsedPage":
        """The elements and texts of a page, which has to exist."""
        answer = self.get(page)
        assert answer.status_code == 200, answer.text
        return ParsedPage(answer.text)

    def sql(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query over the tables."""
        rows: list[dict[str, Any]] = Snapshot.open(self.root).query(query).to_pylist()
        return rows


class ParsedPage(HTMLParser):
    """Elements with their attributes, and the texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All text, with single spaces."""
        return " ".join("".join(self.texts).split())

    def links(self) -> list[str]:
        """The addresses of all links."""
        return [str(values["href"]) for tag, values in self.elements if tag == "a"]

    def expect_accessible_charts(self) -> None:
        """Check that drawings have a summary, tables a caption and headings a scope, and that nothing is inline."""
        drawings = [values for tag, values in self.elements if tag == "svg" and values.get("role") == "img"]
        assert all(values.get("aria-label") or values.get("aria-labelledby") for values in drawings)
        names = [tag for tag, _ in self.elements]
        assert names.count("caption") == names.count("table")
        assert names.count("figure") <= names.count("details")
        assert all(values.get("scope") for tag, values in self.elements if tag == "th")
        assert not [name for _, values in self.elements for name in values if name == "style" or name.startswith("on")]
        assert "style" not in names
