"""Topic ids as text, the way Kafka writes them (`Uuid.toString`): 22 characters of URL-safe base64, no padding."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID


def uuid_text(uuid: UUID) -> str:
    """The text of a topic id."""
    return urlsafe_b64encode(uuid.bytes).decode("ascii").rstrip("=")


def uuid_from_text(text: str) -> UUID:
    """The topic id of a text. Raises ValueError where the text is none."""
    try:
        return UUID(bytes=urlsafe_b64decode(text + "=="))
    except (binascii.Error, ValueError):
        raise ValueError(f"not a topic id: {text!r}") from None
