"""Storage of private brokers is formatted once for the same release and settings, and has ids of its own in every copy."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pipelines.examples.private.kafka import storage
from pipelines.examples.private.kafka.storage import KIND, new_cluster_id, new_storage
from pipelines.runtime.cache.folder import entries

_IDS = "#\n#Fri Nov 27 07:36:41 UTC 2026\nnode.id=1\ndirectory.id=LhwFOnyeIYJOy1E3prodZg\nversion=1\ncluster.id={}\n"


@pytest.fixture
def formatted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Cluster ids for which Kafka's tool was started."""
    found: list[str] = []

    def run_tool(version: str, jars: Path, configuration: Path, cluster_id: str, scram_users: Mapping[str, str]) -> None:
        assert (version, jars) == ("4.1.1", Path("/jars"))
        found.append(cluster_id)
        settings = dict(line.split("=", 1) for line in configuration.read_text().splitlines())
        folder = Path(settings["log.dirs"])
        (folder / "meta.properties").write_text(_IDS.format(cluster_id))
        (folder / "bootstrap.checkpoint").write_text(f"features of {settings['process.roles']}, users {sorted(scram_users)}")

    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(storage, "format_storage", run_tool)
    return found


def started(folder: Path, node: int, roles: str = "broker", **users: str) -> dict[str, str]:
    """Format a new node; return its ids."""
    data = folder / "data"
    data.mkdir(parents=True)
    properties = {"log.dirs": str(data), "node.id": str(node), "process.roles": roles, "listeners": f"PLAINTEXT://h:{node}"}
    configuration = folder / "server.properties"
    configuration.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    new_storage("4.1.1", Path("/jars"), configuration, properties, f"cluster-{node}", users)
    assert (data / "bootstrap.checkpoint").read_text() == f"features of {roles}, users {sorted(users)}"
    lines = (data / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def test_nodes_with_the_same_settings_share_one_formatting(tmp_path: Path, formatted: list[str]) -> None:
    ids = [started(tmp_path / str(node), node) for node in (1, 2, 3)]
    assert formatted == ["cluster-1"]
    assert [(each["node.id"], each["cluster.id"], each["version"]) for each in ids] == [
        (str(node), f"cluster-{node}", "1") for node in (1, 2, 3)
    ]
    assert len({each["directory.id"] for each in ids}) == 3


def test_other_settings_are_formatted_again(tmp_path: Path, formatted: list[str]) -> None:
    started(tmp_path / "1", 1)
    started(tmp_path / "2", 2, "broker,controller")
    assert formatted == ["cluster-1", "cluster-2"]


def test_storage_with_users_is_not_kept(tmp_path: Path, formatted: list[str]) -> None:
    for node in (1, 2):
        started(tmp_path / str(node), node, alice="secret")
    assert formatted == ["cluster-1", "cluster-2"]
    assert list(entries(KIND)) == []


def test_an_id_does_not_begin_like_an_option() -> None:
    ids = {new_cluster_id() for _ in range(50)}
    assert len(ids) == 50
    assert {len(each) for each in ids} == {22}
    assert not [each for each in ids if each.startswith("-")]
