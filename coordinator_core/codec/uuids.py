"""Topic ids as text (`Uuid.toString`): 22 characters of URL-safe base64 without padding."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID


def uuid_text(uuid: UUID) -> str:
    """Return the text of a topic id."""
    return urlsafe_b64encode(uuid.bytes).decode("ascii").rstrip("=")


def uuid_from_text(text: str) -> UUID:
    """Parse a topic id. Raises ValueError for invalid text."""
    try:
        return UUID(bytes=urlsafe_b64decode(text + "=="))
    except (binascii.Error, ValueError):
        raise ValueError(f"invalid topic id {text!r}: use 22 characters of URL-safe base64") from None
