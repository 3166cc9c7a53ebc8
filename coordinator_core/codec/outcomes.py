"""What a decoder answers when bytes are not a record it knows: values, not exceptions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnknownType:
    """The key names a record type that this codec has no layout for (KIP-915: loaders skip it)."""

    record_type: int

    @property
    def reason(self) -> str:
        return f"unknown record type {self.record_type}"


@dataclass(frozen=True, slots=True)
class UnknownVersion:
    """The key is known, its value has a version outside of the known ones."""

    record_type: int
    version: int
    lowest: int
    highest: int

    @property
    def reason(self) -> str:
        return f"record type {self.record_type}: value version {self.version} is not in {self.lowest}–{self.highest}"


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes that end early or say something impossible.

    `part` is "key" or "value", `position` the byte of that part at which reading failed, `record_type` None where the key
    itself has no readable type.
    """

    record_type: int | None
    part: str
    position: int
    problem: str

    @property
    def reason(self) -> str:
        of = "" if self.record_type is None else f"record type {self.record_type}: "
        return f"{of}malformed {self.part} at byte {self.position}: {self.problem}"


Undecodable = UnknownType | UnknownVersion | Malformed
