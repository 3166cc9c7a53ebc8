"""Addresses of sources that are polled, and options of `grouplake run` that need a log."""

import pytest

from pipelines.cli.commands.run import run_options_of
from pipelines.cli.parser import parser
from pipelines.job.run_options import RunOptions, batch_ms
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.errors import UsageError
from pipelines.source.address import open_source, parse_address


def test_an_address_names_brokers_and_no_topic() -> None:
    address = parse_address("kafka-groups://a:9092,b:9092")
    assert str(address) == "kafka-groups://a:9092,b:9092"
    assert address.kafka_address == "kafka://a:9092,b:9092/__consumer_offsets"
    assert (address.is_polled, address.is_cluster, address.has_own_client) == (True, True, True)
    for text in ("kafka-groups://a:9092/topic", "kafka-groups://a", "kafka-groups:a:9092", "kafka-groups://u@a:9092"):
        with pytest.raises(UsageError):
            parse_address(text)


def test_there_is_no_log_to_open() -> None:
    with pytest.raises(UsageError, match="has no log to read"):
        open_source(parse_address("kafka-groups://a:9092"), {})


def polled_options(*arguments: str) -> RunOptions:
    given = parser().parse_args(["run", "--source", "kafka-groups://a:9092", "--tables", "tables", *arguments])
    return run_options_of(given, load_configuration(None))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--era", "0.9"), "needs brokers of Kafka 0.10.2 or later"),
        (("--expiry", "apply"), "needs the times of commits"),
        (("--transactions", "kafka://b:9092"), "polls the coordinators of transactions"),
    ],
)
def test_options_that_need_a_log_are_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        polled_options(*arguments)


def test_transactions_are_polled_with_the_groups() -> None:
    assert polled_options().transactions is None
    polled = polled_options("--transactions").transactions
    assert polled is not None
    assert polled.is_polled


@pytest.mark.parametrize(("trigger", "ms"), [("10s", 10_000), ("continuous", 30_000)])
def test_the_interval_of_polls_is_that_of_the_trigger(trigger: str, ms: int) -> None:
    assert batch_ms(polled_options("--trigger", trigger)) == ms
