"""Outcomes of decoding bytes that are not a known record; they are values, not exceptions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnknownType:
    """The key has a record type without layout (KIP-915: loaders skip it)."""

    record_type: int

    @property
    def reason(self) -> str:
        return f"unknown record type {self.record_type}"


@dataclass(frozen=True, slots=True)
class UnknownVersion:
    """The record type is known, but its value has an unknown version."""

    record_type: int
    version: int
    lowest: int
    highest: int

    @property
    def reason(self) -> str:
        return f"record type {self.record_type}: value version {self.version} is not in {self.lowest}–{self.highest}"


@dataclass(frozen=True, slots=True)
class Malformed:
    """The bytes end early or have an invalid field.

    `part` is "key" or "value", `position` the byte of that part at which reading failed; `record_type` is None if the key has
    no readable type.
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
