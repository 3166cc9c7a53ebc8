"""`grouplake demo --kafka` and Ctrl-C: one line, and none of its processes is left."""

import os
import signal
import threading
from pathlib import Path

import pytest
from demo_process import running_demo
from eventually import eventually
from patience import PATIENCE_SECONDS
from processes import with_environment

from pipelines.examples.demo.fail_over.committing_consumers import CommittingConsumers
from pipelines.examples.private.private_coordinator import PrivateCoordinator

_LAST_LINE = "interrupted: all processes of the demo have ended"


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("starting Kafka", id="broker"),
        pytest.param("starting 2 nodes", id="nodes"),
        pytest.param("starting Spark", id="job"),
        pytest.param("consumers join", id="members"),
        pytest.param("kill -9 of node", id="kill"),
        pytest.param("the consumers have stopped", id="comparison"),
    ],
)
def test_interrupted_fail_over(tmp_path: Path, moment: str) -> None:
    with running_demo(tmp_path, "--kafka") as demo:
        demo.wait_until_printed(moment)
        # as a terminal does: to every process of the foreground group
        os.killpg(demo.process.pid, signal.SIGINT)
        assert demo.wait() == 130
    after = "".join(demo.lines).partition(moment)[2].splitlines()[1:]
    assert after[-1] == _LAST_LINE
    assert "Traceback" not in "\n".join(after)
    eventually("its processes end", lambda: with_environment("TMPDIR", str(tmp_path)), lambda left: not left)


def test_consumers_stop_without_their_coordinator(tmp_path: Path) -> None:
    with PrivateCoordinator(tmp_path / "log", topics={"orders": 2}, group_initial_rebalance_delay_ms=0) as coordinator:
        consumers = CommittingConsumers(coordinator.bootstrap, "orders", ("billing",), 2)
        running = threading.Thread(target=consumers.run, daemon=True)
        running.start()
        eventually("commits are acknowledged", lambda: len(consumers.acknowledged), bool)
        coordinator.kill()
        consumers.stop()
        running.join(PATIENCE_SECONDS)
        assert not running.is_alive()
