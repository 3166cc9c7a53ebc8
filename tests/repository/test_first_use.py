"""Preparations of the tests: made once, by one process, tried again after a failure, whose reason is shown."""

from pathlib import Path

import first_use
import pytest
from checked_commands import CommandFailed, checked

from pipelines.runtime.progress import Progress


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lines that preparations print; without pauses between their tries."""
    lines: list[str] = []
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path))
    monkeypatch.setattr(first_use, "_PAUSES_SECONDS", (0, 0))
    monkeypatch.setattr(first_use, "_progress", lines.append)
    return lines


def test_a_step_that_fails_is_tried_three_times_and_its_reason_is_shown(
    prepared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Progress) -> None:
        checked("sh", "-c", "echo registry unreachable >&2; exit 3")

    monkeypatch.setattr(first_use, "steps", lambda _: [fail])
    with pytest.raises(CommandFailed, match=r"(?s)ended with exit code 3:\nregistry unreachable"):
        first_use.prepare(set())
    assert len(prepared) == 2
    assert all("registry unreachable" in line for line in prepared)


def test_a_step_whose_toolchain_is_missing_is_left_out(prepared: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_use, "steps", lambda _: [lambda _: pytest.skip("no Go in PATH")])
    first_use.prepare(set())
    assert prepared == ["not prepared: no Go in PATH"]


def test_slow_tests_need_more_steps_than_those_of_the_gate() -> None:
    for marker in ("debian", "deployment", "store", "broker"):
        assert len(list(first_use.steps({marker, "slow"}))) > len(list(first_use.steps({marker}))) > 1
