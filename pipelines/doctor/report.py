"""Report of the findings: text, or one JSON object a line."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from pipelines.doctor.checks import Result
from pipelines.doctor.finding import Severity
from pipelines.runtime.terminal_text import mask_of

_WIDTH = max(map(len, Severity))


class Summary:
    """Counts of findings by mark."""

    def __init__(self) -> None:
        self.marks: Counter[Severity] = Counter()

    def counted(self, results: Iterable[Result]) -> Iterator[Result]:
        """Pass the results on, and count them."""
        for result in results:
            self.marks[result.finding.mark] += 1
            yield result

    @property
    def exit_code(self) -> int:
        """1 with a problem, otherwise 0."""
        return 1 if self.marks[Severity.PROBLEM] else 0

    def __str__(self) -> str:
        words = {Severity.PROBLEM: "problem", Severity.WARNING: "warning", Severity.OK: "ok"}
        return ", ".join(_counted(self.marks[mark], word) for mark, word in words.items())


def write_text(results: Iterable[Result], out: TextIO) -> None:
    """Write a line per finding below its area, each as soon as it is found; a remedy is on a line of its own."""
    area, mask = None, mask_of(out)
    for result in results:
        if result.check.area != area:
            area = result.check.area
            out.write(f"{area}\n")
        finding = result.finding
        out.write(f"  {finding.mark:<{_WIDTH}}  {mask(_one_line(finding.found))}\n")
        if finding.remedy:
            out.write(f"  {'':<{_WIDTH}}  → {mask(finding.remedy)}\n")
        out.flush()


def write_left_out(left_out: Mapping[str, Sequence[str]], out: TextIO) -> None:
    """Write what was not checked, and the option that is missing for it."""
    for option, names in left_out.items():
        out.write(f"not checked without {option}: {', '.join(names)}\n")


def write_json(results: Iterable[Result], out: TextIO) -> None:
    """Write one JSON object a line."""
    for result in results:
        finding = result.finding
        row = {
            "area": result.check.area,
            "check": result.check.name,
            "mark": str(finding.mark),
            "found": _one_line(finding.found),
            "remedy": finding.remedy or None,
        }
        out.write(mask_of(out)(json.dumps(row, ensure_ascii=False)) + "\n")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 or word == "ok" else f"{count} {word}s"
