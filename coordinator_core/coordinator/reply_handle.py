"""The caller's handle of a request: a response is returned with the handle of its request."""

from collections.abc import Hashable

#: Never None.
ReplyHandle = Hashable
