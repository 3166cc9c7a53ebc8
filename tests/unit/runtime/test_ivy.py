"""Downloads through Ivy: their progress, and their end. A shell script stands for Java."""

from pathlib import Path

import pytest

from pipelines.runtime.cache import ivy
from pipelines.runtime.cache.ivy import JarsError, retrieve


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(ivy, "SILENCE_LIMIT_SECONDS", 1)


def lines(folder: Path, script: str) -> list[str]:
    """The lines reported while the script runs instead of Java."""
    java, target = folder / "java", folder / "target"
    java.write_text(f"#!/bin/sh\ncd {target}\n{script}")
    java.chmod(0o755)
    target.mkdir()
    reported: list[str] = []
    retrieve(str(java), Path("ivy.jar"), "org.example:one:1.0", target, transitive=True, progress=reported.append)
    return reported


def test_names_numbers_and_sizes_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy, "_REPORT_SECONDS", 0)
    reported: list[str] = []
    report = ivy._Report(reported.append)
    for text in (
        "\tfound org.example#one;1.0 in public\n\tfound org.exa",
        "mple#two;2.0 in public\n",
        "downloading https://repo.example/org/example/one/1.0/one-1.0.jar ...\n",
        "........",
        "... (2000kB)\n.. (0kB)\n\t[SUCCESSFUL ] org.example#one;1.0!one.jar (9ms)\n"
        "downloading https://repo.example/org/example/two/2.0/two-2.0.jar ...\n",
    ):
        report.add(text)
    assert reported == [
        "  resolving dependencies: 1 found",
        "  resolving dependencies: 2 found",
        "  downloading one-1.0.jar: jar 1 of 2, 0.0 MB so far",
        "  downloading one-1.0.jar: jar 1 of 2, 0.0 MB so far",
        "  downloading two-2.0.jar: jar 2 of 2, 2.0 MB so far",
    ]


def test_a_download_that_gets_on_has_no_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # longer than the limit in all, and a quarter of it at a time
    monkeypatch.setattr(ivy, "SILENCE_LIMIT_SECONDS", 4)
    printed = lines(tmp_path, "for n in 1 2 3 4 5; do printf .; sleep 1; done; touch one-1.0.jar")
    assert printed[-1] == "  one-1.0.jar, 0.0 MB"


def test_silence_ends_it(tmp_path: Path) -> None:
    reason = r"no answer for 1 s \(resolving dependencies: 1 found\): is a Maven repository reachable\?"
    expected = rf"^resolving org.example:one:1.0: {reason}$"
    with pytest.raises(JarsError, match=expected):
        lines(tmp_path, "printf '\\tfound org.example#one;1.0 in public\\n'; exec sleep 600")


def test_what_does_not_resolve_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        JarsError, match=r"^org.example:one:1.0 does not resolve: UNRESOLVED DEPENDENCY: org.example#one;1.0: not found$"
    ):
        lines(tmp_path, "printf '\\t\\t:: UNRESOLVED DEPENDENCY: org.example#one;1.0: not found\\n'; exit 1")
