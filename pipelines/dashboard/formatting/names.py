"""Names that clients chose: hostile text until shown. Jinja escapes markup; `visible` shows characters that are invisible."""

from urllib.parse import quote

from coordinator_core.health.visible_names import visible

__all__ = ["segment", "visible"]


def segment(name: str) -> str:
    """The name as one segment of a path, a slash and dots included."""
    encoded = quote(name, safe="", errors="surrogatepass")
    return encoded.replace(".", "%2E") if encoded in (".", "..") else encoded
