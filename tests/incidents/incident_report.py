"""A judgement as text: mistakes of one kind together, with the first of them, and what was not found."""

from collections.abc import Iterator

from judge import FalseStatement, Judgement
from truth import Truth

_MOST_TEXT = 160


def report(judgement: Judgement, truth: Truth) -> str:
    """Lines with every kind of false statement by reader, and every incident that was not found, or not completely."""
    count = len(judgement.false)
    lines = [
        f"{count} false statements, {len(judgement.missing)} parts of incidents not found; seconds since the start of the run"
    ]
    lines += [line for kind in _kinds(judgement, truth) for line in kind]
    return "\n".join([*lines, *(f"- {text[: 2 * _MOST_TEXT]}" for text in judgement.missing)])


def _kinds(judgement: Judgement, truth: Truth) -> Iterator[list[str]]:
    by_kind: dict[tuple[str, str, str], list[FalseStatement]] = {}
    for each in judgement.false:
        by_kind.setdefault((each.statement.reader, each.mistake, truth.phase(each.statement.about)), []).append(each)
    for (reader, mistake, phase), found in by_kind.items():
        first, last = found[0].statement, found[-1].statement
        groups = sorted({each.statement.group for each in found if each.statement.group})
        yield [
            f"{reader}: {mistake} ({phase}): {len(found)} statements from {first.at - truth.started:.0f} to "
            f"{last.at - truth.started:.0f} s, groups: {', '.join(groups) or 'all'}",
            f"    said of {first.group or 'the cluster'} for {first.about - truth.started:.1f} s: {first.text[:_MOST_TEXT]!r}",
            f"    true: {found[0].truth}",
        ]
