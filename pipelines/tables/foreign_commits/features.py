"""Protocols of Delta tables: the versions and features that Grouplake and delta-rs read and write.

Delta's protocol numbers stand for fixed features up to reader version 2 and writer version 6. From reader version 3 and writer
version 7 on, a table lists its features (Delta's PROTOCOL.md, "Table Features").
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: Reader features that DataFusion and pyarrow read through delta-rs. Each leaves the files of a table as Grouplake writes them.
READABLE = frozenset({"timestampNtz", "variantType", "variantType-preview"})

#: Writer features that delta-rs writes.
WRITABLE = READABLE | {"appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants"}

#: Names of the features that the versions before the lists of features stand for.
_OF_READER_2 = "columnMapping"
_OF_WRITER_6 = "identityColumns"


@dataclass(frozen=True)
class TableProtocol:
    """The protocol of a version of a table."""

    reader: int = 1
    writer: int = 2
    reader_features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()

    @classmethod
    def of_action(cls, action: Mapping[str, Any]) -> "TableProtocol":
        """The protocol in a `protocol` action. Values of another type count as unknown features."""
        reader, writer = action.get("minReaderVersion"), action.get("minWriterVersion")
        if not isinstance(reader, int) or not isinstance(writer, int):
            return cls(3, 7, frozenset({"unknown"}), frozenset({"unknown"}))
        return cls(reader, writer, _names(action.get("readerFeatures")), _names(action.get("writerFeatures")))

    @property
    def unreadable(self) -> tuple[str, ...]:
        """What Grouplake or delta-rs cannot read: names of features, or a version. Empty if the table is readable."""
        if self.reader <= 1:
            return ()
        if self.reader == 2:
            return (_OF_READER_2,)
        return (f"version {self.reader}",) if self.reader > 3 else tuple(sorted(self.reader_features - READABLE))

    @property
    def unwritable(self) -> tuple[str, ...]:
        """What delta-rs cannot write, as `unreadable`."""
        if self.writer <= 4:
            return ()
        if self.writer < 7:
            return (_OF_READER_2,) if self.writer == 5 else (_OF_READER_2, _OF_WRITER_6)
        return (f"version {self.writer}",) if self.writer > 7 else tuple(sorted(self.writer_features - WRITABLE))

    @property
    def problem(self) -> str | None:
        """A phrase about what Grouplake cannot handle, such as "it needs a reader of protocol 3 (deletionVectors)"."""
        for role, version, features in (("reader", self.reader, self.unreadable), ("writer", self.writer, self.unwritable)):
            if features:
                return f"it needs a {role} of protocol {version} ({', '.join(features)})"
        return None


def _names(found: object) -> frozenset[str]:
    return frozenset(str(each) for each in found) if isinstance(found, Iterable) and not isinstance(found, str) else frozenset()
