"""The caller's handle of a request; its response is returned with the same handle."""

from collections.abc import Hashable

#: Never None.
ReplyHandle = Hashable
