"""Nothing in the tests fails only because a machine is slow: no small limit, no measured time, no port that may be taken."""

from pathlib import Path

import pytest
from impatience import impatience

TESTS = Path(__file__).parents[1]

#: What must be found, and the line of it.
PLANTED = {
    "a mark": (1, "@pytest.mark.slow\n@pytest.mark.timeout(300)\ndef test(): ..."),
    "a mark of a test that is not slow": (0, "@pytest.mark.timeout(3_600)\ndef test(): ..."),
    "a mark of a module": (0, "pytestmark = [pytest.mark.slow, pytest.mark.timeout(60 + 20 * KILLS)]"),
    "the only mark of a module": (0, "pytestmark = pytest.mark.timeout(1_800)"),
    "a limit of a command": (0, "subprocess.run(command, timeout=50)"),
    "a limit with a name": (1, "_LIMIT = 30\nprocess.wait(_LIMIT)"),
    "a limit of a future": (0, "admin.create_topics([topic])['t'].result(20)"),
    "a limit of a flush": (0, "assert producer.flush(10) == 0"),
    "a limit of a sent record": (0, "producer.send('t', b'v').get(30)"),
    "a limit of a transaction": (0, "producer.send_offsets_to_transaction(offsets, metadata, 20)"),
    "a limit of an answer": (0, "offset = member.committed([partition], 10)[0].offset"),
    "a limit of a thread": (0, "thread.join(60)"),
    "a limit of a queue": (0, "found = queue.get(timeout=5)"),
    "a limit of an event": (0, "assert entered.wait(30)"),
    "a limit of a coroutine": (0, "await asyncio.wait_for(reader.read(), 5)"),
    "a limit of a block": (1, "async def test():\n    async with asyncio.timeout(10): ..."),
    "a limit of a socket": (0, "wire.settimeout(1)"),
    "the patience of a wait": (0, "eventually('the group is stable', state, patience_seconds=30)"),
    "a default": (0, "def ended(self, *, limit_seconds: float = 60): ..."),
    "a session": (0, "Consumer({'group.id': 'g', 'session.timeout.ms': 6_000})"),
    "a session of another library": (0, "KafkaConsumer('t', session_timeout_ms=10_000)"),
    "a session in text": (0, "settings = {'session.timeout.ms': '10000'}"),
    "an elapsed time": (2, "def test():\n    begun = time.monotonic()\n    assert time.monotonic() - begun < 5"),
    "an elapsed time with a name": (
        3,
        "def test():\n    a = time.time()\n    took = time.time() - a\n    assert took <= 4 * LIMIT / 10",
    ),
    "an interval": (2, "def test():\n    a = time.perf_counter()\n    assert 1 < time.perf_counter() - a < 8"),
    "times in a list": (
        4,
        "def test():\n    a = time.monotonic()\n    took = []\n    took.append(time.monotonic() - a)\n    assert max(took) < 0.2",
    ),
    "a bound on the left": (2, "def test():\n    a = time.monotonic()\n    assert 20 > time.monotonic() - a"),
    "a returned port": (
        3,
        "def port():\n    with socket.socket() as s:\n        s.bind(('', 0))\n        return s.getsockname()[1]",
    ),
    "a port after its socket": (
        2,
        "def test():\n    with socket.create_server(('', 0)) as s:\n        port = s.getsockname()[1]\n    serve(port)",
    ),
    "a port after a close": (
        2,
        "def test():\n    s = socket.create_server(('', 0))\n    port = s.getsockname()[1]\n    s.close()\n    serve(port)",
    ),
}
#: The same in a file that drives a browser.
PLANTED_IN_A_BROWSER = {
    "an assertion": (0, "expect(page.locator('p')).to_have_text('9', timeout=20_000)"),
    "an action": (0, "page.click('p', timeout=5_000)"),
    "a default": (0, "page.set_default_timeout(30_000)"),
}
#: What is allowed.
PATIENT = {
    "a long mark of a slow test": "@pytest.mark.slow\n@pytest.mark.timeout(1_200 + 60 * KILLS)\ndef test(): ...",
    "no limit": "thread.join()\nprocess.wait()\nfuture.result()\n', '.join(names)\nfound.get(30)",
    "the limits of all tests": "subprocess.run(command, timeout=PATIENCE_SECONDS)\nprocess.wait(LIMIT_SECONDS)",
    "a large limit": "subprocess.run(command, timeout=900)",
    "a reason": "wire.settimeout(0.2)  # runs out: the coordinator reads no more",
    "a pause of a loop": "while not stop.wait(0.05):\n    closing.wait(2)",
    "a lower bound": "def test():\n    a = time.monotonic()\n    assert time.monotonic() - a > 1",
    "a reported age": "def test():\n    a = time.time()\n    assert row['lag_seconds'] >= row['sampled_at'] - a",
    "a printed time": "def test():\n    a = time.monotonic()\n    print(time.monotonic() - a)",
    "a port of an open socket": "def test():\n    with socket.create_server(('', 0)) as s:\n        serve(s.getsockname()[1])",
    "a member that is to stay": "Consumer({'group.id': 'g', 'session.timeout.ms': 45_000})",
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_fault_is_found(what: str) -> None:
    line, source = PLANTED[what]
    assert [found.line for found in impatience(source)] == [line + 1]


@pytest.mark.parametrize("what", PLANTED_IN_A_BROWSER)
def test_a_planted_fault_in_a_browser_is_found(what: str) -> None:
    line, source = PLANTED_IN_A_BROWSER[what]
    assert [found.line for found in impatience(source, in_browser=True)] == [line + 1]
    assert impatience(source) == []


@pytest.mark.parametrize("what", PATIENT)
def test_patient_code_is_allowed(what: str) -> None:
    assert impatience(PATIENT[what]) == []


def test_no_test_is_impatient() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{each.line}: {each.why}"
        for path in sorted(TESTS.rglob("*.py"))
        for each in impatience(path.read_text(encoding="utf-8"), in_browser="browser" in path.parts)
    ]
    assert found == []
