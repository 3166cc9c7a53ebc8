"""`grouplake example` writes the log that README's tour runs on."""

from pathlib import Path

import pytest

from pipelines.cli import main
from pipelines.source.address import open_source, parse_address


def test_the_address_that_it_prints_is_a_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example", str(tmp_path / "log")]) == 0
    address = capsys.readouterr().out.strip()
    source = open_source(parse_address(address), {})
    assert sum(source.end_offsets().values()) > 0
    source.close()


def test_a_folder_with_files_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("kept")
    assert main(["example", str(tmp_path)]) == 2
    assert "the folder is not empty" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["example", str(tmp_path / "file" / "log")]) == 2
    assert "Not a directory" in capsys.readouterr().err
