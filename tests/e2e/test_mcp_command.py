"""`grouplake mcp` on standard input and output: a scripted agent finds the incidents of the tutorial, now and an hour later."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from dashboards import configuration_file
from mcp import Client, StdioServerParameters
from shop_history import shop_tables

#: The first test builds the tables, which takes minutes beside other work.
pytestmark = pytest.mark.long

_GROUPLAKE = ["-c", "import sys; from pipelines.cli import main; sys.exit(main())"]


async def agent(client: Client, at: str | None) -> dict[str, Any]:
    """What an agent that only compares values finds, about `at` or now."""

    async def call(tool: str, **arguments: Any) -> dict[str, Any]:
        found = await client.call_tool(tool, {**({"at": at} if at else {}), **arguments})
        assert found.structured_content is not None, found.content
        assert not found.is_error
        answer: dict[str, Any] = found.structured_content
        return answer

    async def words(group: str, kind: str, **arguments: Any) -> list[str]:
        events = (await call("timeline", group=group, **arguments))["events"]
        return [event["words"] for event in events if event["kind"] == kind]

    groups = await call("groups", limit=20)
    billing = await call("group", group="billing")
    return {
        "at": groups["at"][:16],
        "attention": {row["group_id"]: row["status"] for row in groups["groups"] if row["status"] != "OK"},
        "stuck": [billing["findings"][0][name] for name in ("rule", "since", "next_step")],
        "worst": (billing["partitions"][0]["topic"], billing["partitions"][0]["partition"]),
        "storm": await words("search-indexer", "storm", span="12h"),
        "reset": await words("recommendations", "reset", span="30h"),
        "expired": await words("report-monthly", "removal", span="12h"),
        "next": [(row["group_id"], row["expires_in_seconds"]) for row in (await call("expiring"))["expiring"]],
        "blocked": {(row["group_id"], row["producer_id"]) for row in (await call("transactions"))["blocked"]},
        "owners": {row["group_id"]: row["client_id"] for row in (await call("owners", topic="orders", partition=3))["stays"]},
    }


def test_the_incidents_of_the_tutorial_now_and_an_hour_later(tmp_path: Path) -> None:
    conf = configuration_file(tmp_path, {"dashboard": "mcp_seconds = 1200"})
    command = StdioServerParameters(
        command=sys.executable, args=[*_GROUPLAKE, "mcp", "--tables", f"shop={shop_tables()}", "--conf", conf]
    )

    async def both() -> list[dict[str, Any]]:
        async with Client(command) as client:
            return [await agent(client, "2026-03-04T13:00:00Z"), await agent(client, None)]

    then, now = asyncio.run(both())
    assert (then["at"], now["at"]) == ("2026-03-04T13:00", "2026-03-04T14:00")
    for found in (then, now):
        assert found["attention"].keys() >= {"billing", "payments-ledger", "ledger-export", "inventory-audit"}
        rule, since, next_step = found["stuck"]
        assert (rule, since) == ("stopped", "2026-03-04T10:49:59Z")
        assert "billing-1 on 10.42.4.11" in next_step
        assert found["worst"] == ("orders", 3)
        assert found["owners"]["billing"] == "billing-1"
        assert found["storm"] == ["32 rebalances within 19 min 15 s: search-indexer-3 left or timed out 16 times"]
        assert found["reset"] == ["Reset of 6 partitions of clicks by an administrator, back"]
        assert found["expired"] == ["Offsets of 2 partitions of invoices were removed from the log"]
        assert found["blocked"] >= {("payments-ledger", 7002), ("ledger-export", None)}
    assert (then["next"], now["next"]) == ([("inventory-audit", 18000.0)], [("inventory-audit", 14400.0)])
