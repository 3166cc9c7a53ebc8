"""Objects of a store beside delta-rs: data files, the probe of conditional writes, and folders to remove.

Both libraries are bindings of the same Rust crate and read the same environment variables. They differ in the credentials of AWS:
delta-rs uses AWS's own chain, of which the crate lacks profiles and single sign-on. boto3 has it too (the extra `aws`).
"""

import os
import re
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from pipelines.runtime.errors import TablesError, UsageError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

#: Scheme of a URI → the store in messages.
STORES = {
    **dict.fromkeys(("s3", "s3a"), "S3"),
    **dict.fromkeys(("abfs", "abfss", "az", "azure"), "Azure"),
    "gs": "Google Cloud Storage",
}

#: boto3's credentials are requested again after this time. It renews those that expire within ten minutes.
_CREDENTIALS_VALID = timedelta(minutes=5)

#: Colours in the messages of delta-rs.
_STYLES = re.compile(r"\x1b?\[[0-9;]*m")


class ObjectExists(Exception):
    """Raised by a conditional write of a key that exists."""


class Objects:
    """The objects under `uri`; keys are relative to it.

    Raises:
        UsageError: from the constructor, for a URI of an unknown store or an incomplete configuration.
        TablesError: from the methods, with the reason of the store.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._store = _opened(uri)

    def read(self, key: str) -> Any:
        """Return the object as a buffer."""
        import obstore

        return self._done(key, lambda: obstore.get(self._store, key).bytes())

    def read_small(self, key: str, longest: int) -> bytes | None:
        """Return the object, None without it. With one request, whose answer has the reason of an error."""
        import obstore
        from obstore.exceptions import NotFoundError

        def get() -> bytes | None:
            try:
                found = obstore.get(self._store, key)
            except (FileNotFoundError, NotFoundError):
                return None
            if found.meta["size"] > longest:
                raise OSError("it is not a small file")
            return bytes(found.bytes())

        content: bytes | None = self._done(key, get)
        return content

    def write(self, key: str, data: Any) -> None:
        """Write an object, replacing an existing one."""
        import obstore

        self._done(key, lambda: obstore.put(self._store, key, data))

    def create(self, key: str, data: bytes) -> None:
        """Write an object under the condition that the key does not exist. Raises ObjectExists."""
        import obstore

        self._done(key, lambda: obstore.put(self._store, key, data, mode="create"))

    def delete(self, keys: list[str]) -> None:
        """Delete objects, which need not exist."""
        import obstore

        self._done(self.uri, lambda: obstore.delete(self._store, keys))

    def keys(self, folder: str) -> list[str]:
        """List the keys of all objects whose key begins with `folder/`."""
        import obstore

        found: list[str] = self._done(
            folder, lambda: [meta["path"] for page in obstore.list(self._store, folder) for meta in page]
        )
        return found

    def _done(self, key: str, request: Callable[[], Any]) -> Any:
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            return request()
        except (AlreadyExistsError, FileExistsError) as error:
            raise ObjectExists(f"{self.uri}/{key} exists already") from error
        except (BaseError, FileNotFoundError, PermissionError) as error:
            raise TablesError(reason_of(error)) from error


def is_known_store(uri: str) -> bool:
    """True for the URI of a store that Grouplake can write to."""
    return scheme_of(uri) in STORES


def scheme_of(uri: str) -> str:
    """Scheme of a URI in lower case."""
    return uri.partition("://")[0].lower()


def reason_of(error: BaseException) -> str:
    """One line with the reason of an error of a store: the code and message of its answer, else the first and the last cause."""
    text = _STYLES.sub("", str(error)).partition("\n\nDebug source")[0]
    code, message = (_between(text, f"<{name}>", f"</{name}>") for name in ("Code", "Message"))
    if code:
        return f"{code}: {message.splitlines()[0]}" if message else code
    causes = [cause for line in text.splitlines() if (cause := line.strip(" \u21b3"))]
    if len(causes) > 1 and "\u21b3" in text:
        return f"{causes[0]}: {causes[-1]}"
    return causes[0] if causes else type(error).__name__


def _between(text: str, start: str, end: str) -> str:
    found = text.partition(start)[2]
    return found.partition(end)[0].strip() if end in found else ""


@cache
def _opened(uri: str) -> "ObjectStore":
    from obstore.exceptions import BaseError
    from obstore.store import from_url

    if not is_known_store(uri):
        raise UsageError(f"unknown kind of store {scheme_of(uri)}:// in {uri}: use s3://, abfss:// or gs://, or a local folder")
    try:
        return from_url(uri, credential_provider=_chain_credentials() if STORES[scheme_of(uri)] == "S3" else None)
    except (BaseError, ValueError) as error:
        raise UsageError(f"cannot open {uri}: {reason_of(error)}") from error


def _chain_credentials() -> Any:
    """Credentials of AWS's own chain by boto3; None if the environment has the keys, or without boto3 and profile."""
    if os.environ.get("AWS_ACCESS_KEY_ID") or os.environ.get("AWS_SKIP_SIGNATURE"):
        return None
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError as error:
        if "AWS_PROFILE" not in os.environ:
            return None
        profile = os.environ["AWS_PROFILE"]
        raise UsageError(f"AWS_PROFILE is {profile}, and profiles need boto3: install grouplake[aws]") from error
    return Boto3CredentialProvider(ttl=_CREDENTIALS_VALID)
