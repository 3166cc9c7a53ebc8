"""Answers to an agent about the time of a run when the tables are an hour newer."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from agent import Question, answers
from mcp import StdioServerParameters
from observers import Observation
from truth import Truth

from coordinator_core.health import EndOffsetSample, samples_table
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.lag.sampling.sampling import LagSampling
from pipelines.tables.store import TableStore

_PROGRAM = str(Path(sys.executable).with_name("grouplake"))
_ERA = Era.named("4")


def told_an_hour_later(tables: Path, truth: Truth, observations: Sequence[Observation]) -> list[tuple[Observation, Observation]]:
    """The last answers to the agent about each group before the job was away and at the end, each with that of an hour later.

    The second one is about the batch of the first one, and has its times.
    """
    later = tables.with_name(f"{tables.name}-later")
    shutil.copytree(tables, later)
    newest = _sample(str(later), datetime.fromtimestamp(truth.ended, UTC) + timedelta(hours=1), truth)
    chosen = list(_last(observations, [*(gap.low for gap in truth.away), truth.ended]))
    questions = [Question(each.group or "", each.body["batch_id"]) for each in chosen]
    command = StdioServerParameters(command=_PROGRAM, args=["mcp", "--tables", str(later)])
    now, *told = answers(command, [Question(chosen[0].group or ""), *questions])
    assert now.fields is not None
    assert now.fields["batch_id"] == newest
    return [
        (before, Observation("agent, an hour later", before.asked, before.at, 200, after.fields, group=before.group))
        for before, after in zip(chosen, told, strict=True)
    ]


def facts(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an answer about a batch has to say at any later time: status, incidents with their starts, members."""
    found = [{name: each[name] for name in ("rule", "status", "since", "partitions")} for each in answer["findings"]]
    members = sorted((each["client_id"], str(each["owns"])) for each in answer["members"])
    return {**{name: answer[name] for name in ("group_id", "batch_id", "status")}, "findings": found, "members": members}


def _last(observations: Sequence[Observation], times: Sequence[float]) -> Iterator[Observation]:
    of_agent = [each for each in observations if each.reader == "agent" and each.code == 200]
    for before in times:
        yield from {each.group: each for each in of_agent if each.at < before}.values()


def _sample(root: str, at: datetime, truth: Truth) -> int:
    """Write a batch with a sample of log ends that have not moved since the run, as the job does. Returns its id."""

    def ends(wanted: Mapping[str, set[int]]) -> pa.Table:
        asked_ms = round(at.timestamp() * 1000)
        places = [(topic, partition) for topic in sorted(wanted) for partition in sorted(wanted[topic])]
        known = {place: truth.positions.ends[place].values[-1] for place in places}
        return samples_table(
            [EndOffsetSample(None, *place, asked_ms, asked_ms + 10, 0, end, end) for place, end in known.items()]
        )

    applier = BatchApplier(TableStore(root), _ERA, _ERA.default_retention_ms, dict, 1_000_000, clock=lambda: at)
    assert LagSampling(ends, lambda: at).sample(applier.claim()) is not None
    batch = TableStore(root).last_batch()
    assert batch is not None
    return batch.batch_id
