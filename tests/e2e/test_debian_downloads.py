"""Downloads of Debian packages: dependencies, package lists of our own, progress, a download that hangs, a broken package."""

import os
import subprocess
from pathlib import Path

import apt_downloads
import pytest
from apt_downloads import DownloadError, download_missing
from checked_commands import CommandFailed
from debian_packages import debian_files_with_dependencies, library_path

pytestmark = pytest.mark.skipif(not apt_downloads.is_apt_here(), reason="no `apt-get` and `dpkg-deb` in PATH")


def apt_that(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program `apt-get` in front of the machine's."""
    program = folder / "bin" / "apt-get"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


def test_packages_are_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "libone" / "usr" / "lib" / "x86_64-linux-gnu" / "libone.so.0"
    control = tmp_path / "libone" / "DEBIAN" / "control"
    for file, text in ((library, ""), (control, "Package: libone\nVersion: 1\nArchitecture: all\nMaintainer: x\n")):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    subprocess.run(["dpkg-deb", "--build", tmp_path / "libone", tmp_path / "libone.deb"], check=True, capture_output=True)
    apt_that(tmp_path, f"cp {tmp_path}/libone.deb archives", monkeypatch)
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path / "cache"))
    lines: list[str] = []
    files = debian_files_with_dependencies("libone", lines.append)
    assert lines == [f"downloading libone-with-dependencies of Debian (once; kept in {files})"]
    assert library_path(files) == str(files / "usr" / "lib" / "x86_64-linux-gnu")
    assert debian_files_with_dependencies("libone", pytest.fail) == files
    assert sorted(each.name for each in files.iterdir()) == ["usr"]


def test_a_package_that_cannot_be_unpacked_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt_that(tmp_path, "echo none > archives/broken.deb", monkeypatch)
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(CommandFailed, match=r"(?s)`dpkg-deb -x .*broken.deb.*exit code 2:.*is not a Debian format archive"):
        debian_files_with_dependencies("broken")
    assert not (tmp_path / "cache" / "debian" / "broken-with-dependencies").exists()


@pytest.mark.network
def test_a_package_with_its_dependencies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that has libc and nothing else."""
    libc = "Package: libc6\nStatus: install ok installed\nPriority: optional\nMaintainer: x\nArchitecture: {}\nVersion: 99\n"
    status = tmp_path / "status"
    status.write_text(libc.format("amd64" if os.uname().machine == "x86_64" else "arm64"))
    settings = tmp_path / "apt.conf"
    settings.write_text(f'Dir::State::Status "{status}";\n')
    monkeypatch.setenv("APT_CONFIG", str(settings))
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path / "cache"))
    lines: list[str] = []
    files = debian_files_with_dependencies("libogg-dev", lines.append)
    assert lines[0].startswith("downloading libogg-dev-with-dependencies of Debian (once; kept in ")
    libraries = [Path(folder) for folder in library_path(files).split(os.pathsep)]
    assert [each for folder in libraries for each in folder.glob("libogg.so.0")]
    assert debian_files_with_dependencies("libogg-dev", pytest.fail) == files
    assert sorted(each.name for each in files.parent.iterdir() if not each.name.startswith(".")) == [files.name]


def test_lists_of_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's lists do not have the package."""
    apt_that(tmp_path, 'case "$*" in *State::Lists*) touch archives/one_1_all.deb;; *) exit 100;; esac', monkeypatch)
    assert [each.name for each in download_missing(["one"], tmp_path)] == ["one_1_all.deb"]


def test_an_unknown_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt_that(tmp_path, "echo E: Unable to locate package one; exit 100", monkeypatch)
    with pytest.raises(DownloadError, match="update failed: E: Unable to locate package one"):
        download_missing(["one"], tmp_path)


def test_a_download_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt_downloads, "PATIENCE_SECONDS", 0.5)
    apt_that(tmp_path, "echo begun; exec sleep 600", monkeypatch)
    with pytest.raises(DownloadError, match=r"nothing received for 0.5 s, 0 MB until then"):
        download_missing(["one"], tmp_path)
