"""Connection options become those of librdkafka."""

from pathlib import Path

import pytest

from coordinator_core.log.errors import LogMisconfigured
from coordinator_core.topic_log.client_options import client_options


def test_names_of_the_library() -> None:
    found = client_options(
        ("a:1", "b:2"),
        {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "sasl_username": "u",
            "sasl_password": "p",
            "ssl_cafile": "f",
        },
        lambda: 0.0,
    )
    del found["logger"]
    assert found == {
        "client.id": "grouplake",
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p",
        "ssl.ca.location": "f",
    }
    assert client_options((), {"ssl_check_hostname": "false"}, lambda: 0.0)["ssl.endpoint.identification.algorithm"] == "none"


def test_a_token_is_read_again_for_each_request(tmp_path: Path) -> None:
    path = tmp_path / "token"
    get = client_options((), {"sasl_oauth_token_file": str(path)}, lambda: 100.0)["oauth_cb"]
    for token in ("first", "second"):
        path.write_text(f"{token}\n")
        assert get("") == (token, 160.0)
    path.unlink()
    with pytest.raises(LogMisconfigured, match=f"sasl_oauth_token_file {path}: No such file"):
        get("")
