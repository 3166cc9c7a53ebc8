"""`[groups] include, exclude`: which groups are read, and what is refused."""

from pathlib import Path

import pytest

from pipelines.cli.commands.run import run_options_of
from pipelines.cli.parser import parser
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.errors import UsageError
from pipelines.source.group_patterns import GroupPatterns


@pytest.mark.parametrize(
    ("include", "exclude", "read"),
    [
        ([], [], ["a-1", "a-2", "b\n", ""]),
        (["a-.*"], [], ["a-1", "a-2"]),
        (["a-.*", "b."], [".*2"], ["a-1", "b\n"]),
        ([], ["a"], ["a-1", "a-2", "b\n", ""]),
        (["A-.*"], [], []),
    ],
)
def test_selected_groups(include: list[str], exclude: list[str], read: list[str]) -> None:
    patterns = GroupPatterns.of(include, exclude)
    assert list(filter(patterns.reads, ["a-1", "a-2", "b\n", ""])) == read
    assert bool(patterns) is bool(include or exclude)


@pytest.mark.parametrize("pattern", ["(", 3])
def test_invalid_patterns(pattern: object) -> None:
    with pytest.raises(UsageError, match=r"groups\.exclude has"):
        GroupPatterns.of([], [pattern])


def test_only_a_source_of_polls_has_patterns(tmp_path: Path) -> None:
    configuration = tmp_path / "own.toml"
    configuration.write_text('[groups]\ninclude = ["billing-.*"]\n')

    def options(source: str) -> GroupPatterns:
        arguments = parser().parse_args(["run", "--source", source, "--tables", "t", "--conf", str(configuration)])
        return run_options_of(arguments, load_configuration(str(configuration))).groups

    assert options("kafka-groups://a:9092").reads("billing-1")
    assert not options("kafka-groups://a:9092").reads("other")
    with pytest.raises(UsageError, match=r"^\[groups\] is for kafka-groups:// only: kafka reads all groups$"):
        options("kafka://a:9092/__consumer_offsets")
