"""Findings of `grouplake doctor`, run in this process."""

import json
from dataclasses import dataclass

import pytest

from pipelines.cli import main


@dataclass
class Doctor:
    """Runs the command and keeps its findings, as (area, check, mark, found, remedy)."""

    captured: pytest.CaptureFixture[str]

    def examine(self, *arguments: str) -> "Findings":
        """The findings, with the exit code of the command."""
        code = main(["doctor", "--format", "json", *arguments])
        out, err = self.captured.readouterr()
        assert err == ""
        rows = [json.loads(line) for line in out.splitlines()]
        for row in rows:
            # a reader of a finding that is not ok needs to know what to do
            assert bool(row["remedy"]) == (row["mark"] != "ok"), row
        assert code == (1 if any(row["mark"] == "problem" for row in rows) else 0)
        return Findings(rows, code)


@dataclass
class Findings:
    """Rows of the command's JSON, and its exit code."""

    rows: list[dict[str, str]]
    code: int

    def of(self, area: str, check: str) -> list[tuple[str, str]]:
        """Mark and text of the findings of a check."""
        return [(row["mark"], row["found"]) for row in self.rows if (row["area"], row["check"]) == (area, check)]

    def marks(self, area: str) -> dict[str, str]:
        """Check → the worst mark of its findings, of an area."""
        order = ("ok", "warning", "problem")
        found: dict[str, str] = {}
        for row in self.rows:
            if row["area"] == area:
                found[row["check"]] = max(found.get(row["check"], "ok"), row["mark"], key=order.index)
        return found
