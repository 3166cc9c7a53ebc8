"""A short, deterministic run of every fuzz target, and the report of a finding's input."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import fuzz_run
import pytest
from fuzz_target import Target
from fuzz_worker import TARGETS, check_chunk, inputs

#: Chunks per target.
CHUNKS = {"columnar": 12, "logs": 60, "fetch-answers": 40, "segments": 20}


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_typed_outcomes(name: str) -> None:
    findings = [finding for chunk in range(CHUNKS.get(name, 30)) for finding in check_chunk(TARGETS[name], 0, chunk)]
    assert findings == []


def test_mutations_reach_both_outcomes() -> None:
    """Inputs that are all rejected at the first byte would find nothing."""
    from coordinator_core.codec import Record, decode

    outcomes = [type(decode(*pair)) is Record for chunk in range(20) for pair in inputs(TARGETS["records"], 0, chunk)]
    assert 0.1 < sum(outcomes) / len(outcomes) < 0.9


def refuse_forty_two(given: Sequence[int]) -> None:
    assert 42 not in given


def refuse_company(given: Sequence[int]) -> None:
    assert len(given) < 2


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> Target:
    target = Target("numbers", lambda rng: rng.randrange(50), refuse_forty_two, share=1, chunk=10)
    monkeypatch.setitem(TARGETS, target.name, target)
    return target


def test_the_input_at_fault_is_named_and_made_again(numbers: Target, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    findings = [finding for chunk in range(20) for finding in check_chunk(numbers, 3, chunk)]
    assert findings
    assert {finding.given for finding in findings} == {"42"}
    assert {finding.error.split(" in ")[0] for finding in findings} == {"AssertionError"}
    fuzz_run.report(findings, tmp_path)
    first = min(finding.number for finding in findings)
    assert (tmp_path / f"numbers-3-{first}.txt").read_text().endswith("\n42\n")
    assert f"--again numbers:3:{first}" in capsys.readouterr().out
    with pytest.raises(AssertionError):
        fuzz_run.again(f"numbers:3:{first}")


def test_a_chunk_that_fails_only_as_a_whole(numbers: Target) -> None:
    whole = Target(numbers.name, numbers.make, refuse_company, share=1, chunk=3)
    assert [finding.number for finding in check_chunk(whole, 0, 5)] == [15]


def test_inputs_depend_on_seed_and_number_alone(numbers: Target) -> None:
    assert inputs(numbers, 1, 2) == inputs(numbers, 1, 2) != inputs(numbers, 2, 2)
    assert Random("numbers 1 2").randrange(50) == inputs(numbers, 1, 2)[0]


def test_the_plan_has_every_input_once() -> None:
    plain, checked = fuzz_run.plan(100_000, list(TARGETS))
    assert sum(stretch.inputs for stretch in plain + checked) >= 100_000
    for name, target in TARGETS.items():
        numbers = [
            number for each in plain + checked if each.target == name for number in range(each.first, each.first + each.chunks)
        ]
        assert sorted(numbers) == list(range(len(numbers)))
        assert any(each.target == name for each in checked) == target.compiled
