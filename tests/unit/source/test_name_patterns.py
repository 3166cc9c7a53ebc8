"""`[groups]` and `[topics]`: which names are read, and what is refused."""

from pathlib import Path

import pytest

from pipelines.cli.commands.run import run_options_of
from pipelines.cli.parser import parser
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.errors import UsageError
from pipelines.source.name_patterns import NamePatterns


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
    patterns = NamePatterns.of("groups", {"include": include, "exclude": exclude})
    assert list(filter(patterns.reads, ["a-1", "a-2", "b\n", ""])) == read
    assert bool(patterns) is bool(include or exclude)


@pytest.mark.parametrize("pattern", ["(", 3])
def test_invalid_patterns(pattern: object) -> None:
    with pytest.raises(UsageError, match=r"topics\.exclude has"):
        NamePatterns.of("topics", {"include": [], "exclude": [pattern]})


@pytest.mark.parametrize("section", ["groups", "topics"])
def test_only_a_source_of_polls_has_patterns(section: str, tmp_path: Path) -> None:
    configuration = tmp_path / "own.toml"
    configuration.write_text(f'[{section}]\ninclude = ["billing-.*"]\n')

    def options(source: str) -> NamePatterns:
        arguments = parser().parse_args(["run", "--source", source, "--tables", "t", "--conf", str(configuration)])
        patterns: NamePatterns = getattr(run_options_of(arguments, load_configuration(str(configuration))), section)
        return patterns

    assert options("kafka-groups://a:9092").reads("billing-1")
    assert not options("kafka-groups://a:9092").reads("other")
    with pytest.raises(UsageError, match=rf"^\[{section}\] is for kafka-groups:// only: kafka reads all {section}$"):
        options("kafka://a:9092/__consumer_offsets")
