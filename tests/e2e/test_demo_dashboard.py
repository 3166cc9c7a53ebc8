"""`grouplake demo --dashboard`: the page moves until Ctrl-C."""

import signal
from pathlib import Path

import httpx
import pytest
from demo_process import demo_with_dashboard
from event_streams import EventStream
from eventually import eventually
from patience import LIMIT_SECONDS, PATIENCE_SECONDS


@pytest.mark.slow
@pytest.mark.spark
def test_members_come_and_go_until_the_demo_is_interrupted(tmp_path: Path) -> None:
    with demo_with_dashboard(tmp_path) as demo:
        url = demo.wait_until_printed(r"dashboard: (http://\S+)/")
        demo.wait_until_printed("members come and go now; Ctrl-C ends the demo")

        def lag() -> int:
            status = httpx.get(f"{url}/v3/kafka/tables/consumer/checkout/lag", timeout=PATIENCE_SECONDS).json()["status"]
            return int(status["totallag"])

        eventually("the group has a lag", lag, lambda found: found > 0, patience_seconds=LIMIT_SECONDS)
        with EventStream(url, "tables").wait_until_open() as stream:
            for number, data in stream.wait_for(3):
                assert number == data["batch_id"]
            demo.process.send_signal(signal.SIGINT)
            stream.wait_until_ended()
        assert demo.wait() == 0
    assert "Traceback" not in "".join(demo.lines)
