"""Addresses and connection options: how they are parsed, and errors by name and without secrets."""

import logging
from pathlib import Path

import pytest

from coordinator_core.log.errors import LogMisconfigured
from coordinator_core.sources.kafka_options import (
    KNOWN_OPTIONS,
    SECRET_OPTIONS,
    library_options,
    parse_address,
    retry_seconds,
    without_secrets,
)


def test_an_address_in_parts() -> None:
    address = parse_address("kafka://h1:9092,[::1]:9093/__consumer_offsets")
    assert address.servers == ("h1:9092", "[::1]:9093")
    assert address.topic == "__consumer_offsets"
    assert str(address) == "kafka://h1:9092,[::1]:9093/__consumer_offsets"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h1:9092/t",
        "kafka:///t",
        "kafka://h1/t",
        "kafka://h1:9092",
        "kafka://h1:9092/",
        "kafka://h1:9092,/t",
        "kafka://h1:9092/a b",
        "kafka://h1:9092/t/u",
        "kafka://h1:0/t",
        "kafka://h1:99999/t",
        "kafka://user:secret@h1:9092/t",
    ],
)
def test_what_is_not_an_address(text: str) -> None:
    with pytest.raises(LogMisconfigured, match="invalid topic address") as failure:
        parse_address(text)
    assert "secret" not in str(failure.value)


def test_how_long_to_wait_is_no_matter_of_the_library() -> None:
    assert library_options({"retry_seconds": "5"}) == {}
    assert [retry_seconds(given) for given in ({}, {"retry_seconds": "5"}, {"retry_seconds": "0"})] == [120, 5, 0]
    for text in ("-1", "a while", "nan", "inf"):
        with pytest.raises(LogMisconfigured, match=f"retry_seconds '{text}': expected a number of seconds, 0 or more"):
            retry_seconds({"retry_seconds": text})


def test_options_under_the_librarys_names(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.touch()
    given = {
        "security_protocol": "sasl_ssl",
        "sasl_mechanism": "scram-sha-512",
        "sasl_username": "u",
        "sasl_password": "p",
        "ssl_cafile": str(file),
        "ssl_check_hostname": "False",
        "request_timeout_ms": "1500",
    }
    assert library_options(given) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
        "ssl_cafile": str(file),
        "ssl_check_hostname": False,
        "request_timeout_ms": 1500,
    }
    assert library_options({}) == {}
    assert SECRET_OPTIONS.issubset(KNOWN_OPTIONS)


SASL = {"security_protocol": "SASL_PLAINTEXT"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sasl.password": "x"}, r"unknown connection option 'sasl\.password' \(known: client_id, "),
        ({"security_protocol": "TLS"}, "security_protocol 'TLS': expected one of PLAINTEXT"),
        ({"request_timeout_ms": "soon"}, "request_timeout_ms 'soon': invalid literal"),
        ({"request_timeout_ms": "-1"}, "request_timeout_ms '-1': expected a positive number"),
        ({"security_protocol": "SSL", "ssl_cafile": "/no/such/file"}, "ssl_cafile '/no/such/file': no such file"),
        ({"security_protocol": "SSL", "ssl_check_hostname": "maybe"}, "ssl_check_hostname 'maybe': expected true or false"),
        ({"sasl_username": "u"}, "sasl_username is set, but security_protocol PLAINTEXT does not use SASL"),
        (SASL | {"ssl_password": "p"}, "ssl_password is set, but security_protocol SASL_PLAINTEXT does not use TLS"),
        (SASL, "needs sasl_mechanism"),
        (SASL | {"sasl_mechanism": "GSSAPI"}, "sasl_mechanism 'GSSAPI': expected one of PLAIN, "),
        (SASL | {"sasl_mechanism": "PLAIN"}, "PLAIN needs sasl_password and sasl_username"),
        (SASL | {"sasl_mechanism": "OAUTHBEARER"}, "needs one of sasl_oauth_token and sasl_oauth_token_file"),
    ],
)
def test_options_that_cannot_be(options: dict[str, str], why: str) -> None:
    with pytest.raises(LogMisconfigured, match=why):
        library_options(options)


def test_secrets_are_blotted_out() -> None:
    options = {"sasl_password": "hunter2", "ssl_password": "", "sasl_username": "u"}
    assert without_secrets("u said hunter2, hunter2", options) == "u said ***, ***"


@pytest.mark.parametrize("name", ["kafka.protocol.parser", "kafka.net.connection"])
def test_request_bodies_are_not_logged(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger(name).debug("request with credentials")
    logging.getLogger(name).warning("throttled")
    # threads of earlier tests, such as Spark's, log as well
    assert [record.getMessage() for record in caplog.records if record.name == name] == ["throttled"]
