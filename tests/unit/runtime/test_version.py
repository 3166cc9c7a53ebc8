"""The git revision that `grouplake --version` prints, and when there is none."""

import subprocess
from pathlib import Path

import pytest

from pipelines.runtime.version import git_revision


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "file").write_text("1")
    git(folder, "add", "file")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def test_commit_of_a_checkout(checkout: Path) -> None:
    assert git_revision(checkout) == git(checkout, "rev-parse", "--short", "HEAD")


def test_a_tag_does_not_replace_the_commit(checkout: Path) -> None:
    git(checkout, "tag", "--annotate", "v1", "--message", "v1")
    assert git_revision(checkout) == git(checkout, "rev-parse", "--short", "HEAD")


def test_changed_files_are_marked_and_new_ones_are_not(checkout: Path) -> None:
    commit = git_revision(checkout)
    (checkout / "new").write_text("1")
    assert git_revision(checkout) == commit
    (checkout / "file").write_text("2")
    assert git_revision(checkout) == f"{commit}-dirty"


def test_a_worktree_has_a_commit_too(checkout: Path) -> None:
    git(checkout, "worktree", "add", "--quiet", str(checkout.with_name("second")))
    assert git_revision(checkout.with_name("second")) == git_revision(checkout)


def test_an_environment_inside_of_another_project_has_none(checkout: Path) -> None:
    (checkout / "site-packages").mkdir()
    assert git_revision(checkout / "site-packages") is None


def test_the_repository_of_a_git_hook_is_not_ours(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = git_revision(checkout)
    monkeypatch.setenv("GIT_DIR", str(checkout / "nowhere"))
    assert git_revision(checkout) == commit


def test_none_without_git(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert git_revision(checkout) is None


def test_none_without_a_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert git_revision(tmp_path) is None
