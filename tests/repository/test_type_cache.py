"""mypy's cache of the last gate: which trees get it, and that it hides nothing that has changed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.type_cache import OF_TREE, borrow, keep, kept_cache


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPLAKE_CACHE", str(tmp_path / "cache"))


def tree(folder: Path, name: str, content: str | None = None) -> Path:
    """A tree whose cache has one file with this content."""
    root = folder / name
    root.mkdir()
    if content is not None:
        (root / OF_TREE).mkdir()
        (root / OF_TREE / "3.11").write_text(content)
    return root


def content(root: Path) -> str:
    return (root / OF_TREE / "3.11").read_text()


def test_a_new_tree_has_the_cache_of_the_last_one(tmp_path: Path) -> None:
    for each in ("first", "second"):
        keep(tree(tmp_path, each, each))
    new, used = tree(tmp_path, "new"), tree(tmp_path, "used", "own")
    borrow(new)
    borrow(used)
    assert (content(new), content(used)) == ("second", "own")
    assert [path.name for path in new.iterdir()] == [OF_TREE]


def test_without_a_cache_nothing_is_copied(tmp_path: Path) -> None:
    new = tree(tmp_path, "new")
    borrow(new)
    keep(new)
    assert list(new.iterdir()) == []
    assert not kept_cache().exists()


@pytest.mark.slow
def test_errors_of_a_tree_with_the_cache_of_another_one(tmp_path: Path) -> None:
    """Both trees have the module that the error comes from; the file that has the error is the same in both."""

    def errors(root: Path, returned: str) -> str:
        (root / "counting.py").write_text(f"number: {returned}\n")
        (root / "use.py").write_text("from counting import number\n\nfound: int = number\n")
        borrow(root)
        command = [sys.executable, "-m", "mypy", "--cache-dir", OF_TREE, "use.py"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        keep(root)
        return done.stdout

    assert errors(tree(tmp_path, "sound"), "int").startswith("Success")
    assert "Incompatible types in assignment" in errors(tree(tmp_path, "broken"), "str")
    assert errors(tree(tmp_path, "mended"), "int").startswith("Success")
