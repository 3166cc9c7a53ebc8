"""A scripted agent without a model, with the client of the Model Context Protocol's own library."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp import Client, StdioServerParameters

#: Rows of each list of an answer: more than a group here has.
_ROWS = 20


@dataclass(frozen=True)
class Question:
    """What is wrong with a group, at a batch or now."""

    group: str
    batch_id: int | None = None


@dataclass(frozen=True)
class Told:
    """The answer to a question; `fields` is None if it was an error, as for a group that has just been deleted."""

    group: str
    asked: float
    answered: float
    fields: dict[str, Any] | None


def answers(server: str | StdioServerParameters, questions: Sequence[Question]) -> list[Told]:
    """Ask the tool `group` in one session. `server` is a URL, or the command to start."""

    async def ask() -> list[Told]:
        async with Client(server) as client:
            return [await _answer(client, question) for question in questions]

    return asyncio.run(ask())


async def _answer(client: Client, question: Question) -> Told:
    asked = time.time()
    at = {} if question.batch_id is None else {"at": str(question.batch_id)}
    found = await client.call_tool("group", {"group": question.group, "limit": _ROWS, **at})
    return Told(question.group, asked, time.time(), None if found.is_error else found.structured_content)
