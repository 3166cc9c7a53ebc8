"""The same batches at leaders of every broker generation: duplicates, gaps, epochs, unknown producers, transactions."""

from collections.abc import Callable

import pytest
from producer_states import ABORT, States

from coordinator_core.producers.append import DataBatch, ProducerRejected
from coordinator_core.producers.leader_checks import check_client_batch
from coordinator_core.producers.rules import RULES, RULES_SINCE, ProducerError
from coordinator_core.state.era import ERAS

OK, DUPLICATE = "accepted", "duplicate"
SEQUENCE = ProducerError.OUT_OF_ORDER_SEQUENCE_NUMBER.name
EPOCH = ProducerError.INVALID_PRODUCER_EPOCH.name
STATE = ProducerError.INVALID_TXN_STATE.name
UNKNOWN = ProducerError.UNKNOWN_PRODUCER_ID.name
RELEASES = ("0.11", "1.0", "2.1", "2.5", "3.6", "4.0", "4.1", "4.2")


def six_batches(states: States) -> None:
    for number in range(6):
        states.append(number, number, epoch=3)


def only_a_marker(states: States) -> None:
    states.marker(0, epoch=3)


def open_transaction(states: States) -> None:
    states.append(0, 0, epoch=3, transactional=True)


def nothing(_states: States) -> None:
    pass


Setup = Callable[[States], None]
#: Case → state before, and sequence, count, epoch, transactional of the batch; answer since a release.
CASES: dict[str, tuple[Setup, tuple[int, int, int, bool], dict[str, str]]] = {
    "repeats the last batch": (six_batches, (5, 1, 3, False), {"0.11": DUPLICATE}),
    "repeats the fifth batch from the end": (six_batches, (1, 1, 3, False), {"0.11": SEQUENCE, "1.0": DUPLICATE}),
    "repeats the sixth batch from the end": (six_batches, (0, 1, 3, False), {"0.11": SEQUENCE}),
    "repeats a part": (six_batches, (4, 2, 3, False), {"0.11": SEQUENCE}),
    "leaves a gap": (six_batches, (7, 1, 3, False), {"0.11": SEQUENCE}),
    "has a lower epoch": (six_batches, (0, 1, 2, False), {"0.11": EPOCH}),
    "has a higher epoch, from 0": (six_batches, (0, 1, 4, False), {"0.11": OK}),
    "has a higher epoch, from 1": (six_batches, (1, 1, 4, False), {"0.11": SEQUENCE}),
    "is of an unknown producer, from 0": (nothing, (0, 1, 0, False), {"0.11": OK}),
    "is of an unknown producer, from 1": (nothing, (1, 1, 0, False), {"0.11": SEQUENCE, "1.0": UNKNOWN, "2.5": OK}),
    "follows a marker, from 1": (only_a_marker, (1, 1, 3, False), {"0.11": SEQUENCE, "2.1": UNKNOWN, "2.5": SEQUENCE}),
    "follows a marker, from 0": (only_a_marker, (0, 1, 3, False), {"0.11": OK}),
    "is outside of the open transaction": (open_transaction, (1, 1, 3, False), {"0.11": STATE}),
    "is not verified": (nothing, (0, 1, 0, True), {"0.11": OK, "3.6": STATE}),
    "is of a fenced producer, not verified": (only_a_marker, (0, 1, 2, True), {"0.11": EPOCH, "3.6": STATE, "4.1": EPOCH}),
    "has a higher epoch than the open transaction": (
        open_transaction,
        (0, 1, 4, True),
        {"0.11": OK, "4.0": STATE},
    ),
}


def since(answers: dict[str, str], release: str) -> str:
    order = {name: number for number, name in enumerate(RULES_SINCE)}
    return answers[max((first for first in answers if order[first] <= order[release]), key=order.__getitem__)]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("case", CASES)
def test_answers_of_a_generation(case: str, release: str) -> None:
    setup, (sequence, count, epoch, transactional), answers = CASES[case]
    states = States(release=release)
    setup(states)
    before = dict(states.manager.entries)
    batch = DataBatch(1, epoch, sequence, 100, 99 + count, states.now, transactional)
    try:
        checked = check_client_batch(states.manager, batch)
        answer = DUPLICATE if checked.duplicate is not None else OK
    except ProducerRejected as rejected:
        answer = rejected.error.name
    assert answer == since(answers, release)
    assert dict(states.manager.entries) == before


@pytest.mark.parametrize(("release", "completes"), [("0.11", True), ("2.5", True), ("2.8", False), ("4.2", False)])
def test_an_empty_transaction_is_completed_before_2_8(release: str, completes: bool) -> None:
    states = States(release=release)
    completed = states.marker(5, ABORT)
    assert (completed is not None) is completes
    if completed is not None:
        assert (completed.first_offset, completed.last_offset) == (5, 5)


@pytest.mark.parametrize(("release", "refused"), [("4.1", False), ("4.2", True)])
def test_markers_of_version_2_need_a_greater_epoch_since_4_2(release: str, refused: bool) -> None:
    states = States(release=release)
    states.append(0, 0, epoch=5, transactional=True)
    if refused:
        with pytest.raises(ProducerRejected):
            states.marker(1, epoch=5, version=2)
    else:
        assert states.marker(1, epoch=5, version=2) is not None


def test_every_era_has_rules() -> None:
    assert RULES.keys() == ERAS.keys()
