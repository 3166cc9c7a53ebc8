"""Downloads through Ivy: their progress, and an end only where there is none. A shell script stands for Java."""

from pathlib import Path

import pytest

from pipelines import ivy
from pipelines.ivy import JarsError, retrieve

#: As Ivy prints it; the jars come in the order in which their sizes are known.
_REPORT = r"""
printf '\tfound org.example#one;1.0 in public\n\tfound org.example#two;2.0 in public\n'; sleep 0.15
printf 'downloading https://repo.example/org/example/one/1.0/one-1.0.jar ...\n'; sleep 0.15
printf '....'; sleep 0.15; printf '.... (2000kB)\n.. (0kB)\n\t[SUCCESSFUL ] org.example#one;1.0!one.jar (9ms)\n'
printf 'downloading https://repo.example/org/example/two/2.0/two-2.0.jar ...\n'; sleep 0.15
printf '. (1000kB)\n\t[SUCCESSFUL ] org.example#two;2.0!two.jar (9ms)\n'
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(ivy, "_REPORT_SECONDS", 0.1)
    monkeypatch.setattr(ivy, "SILENCE_LIMIT_SECONDS", 0.5)


def lines(folder: Path, script: str) -> list[str]:
    """What is reported while the script runs instead of Java."""
    java, target = folder / "java", folder / "target"
    java.write_text(f"#!/bin/sh\ncd {target}\n{script}")
    java.chmod(0o755)
    target.mkdir()
    reported: list[str] = []
    retrieve(str(java), Path("ivy.jar"), "org.example:one:1.0", target, transitive=True, progress=reported.append)
    return reported


def test_names_numbers_and_sizes_are_reported(tmp_path: Path) -> None:
    script = _REPORT + "head -c 2048000 /dev/zero > one-1.0.jar; head -c 1024000 /dev/zero > two-2.0.jar"
    reported = lines(tmp_path, script)
    # which of them fall into the same report depends on the machine
    assert "  downloading two-2.0.jar: jar 2 of 2, 2.0 MB so far" in reported
    assert reported[-1] == "  2 jars, 3.1 MB"


def test_a_download_that_gets_on_has_no_time_limit(tmp_path: Path) -> None:
    assert lines(tmp_path, "for n in 1 2 3 4 5 6; do printf .; sleep 0.2; done; touch one-1.0.jar")[-1] == "  one-1.0.jar, 0.0 MB"


def test_silence_ends_it(tmp_path: Path) -> None:
    expected = r"^resolving org.example:one:1.0: no answer for 0.5 s \(1 module found\): is a Maven repository reachable\?$"
    with pytest.raises(JarsError, match=expected):
        lines(tmp_path, "printf '\\tfound org.example#one;1.0 in public\\n'; exec sleep 600")


def test_what_does_not_resolve_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        JarsError, match=r"^org.example:one:1.0 does not resolve: UNRESOLVED DEPENDENCY: org.example#one;1.0: not found$"
    ):
        lines(tmp_path, "printf '\\t\\t:: UNRESOLVED DEPENDENCY: org.example#one;1.0: not found\\n'; exit 1")
