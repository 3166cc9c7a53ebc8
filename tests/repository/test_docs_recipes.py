"""The Python blocks of docs/python.md and docs/recipes.md run; two files of tests/pipeline run those with Spark."""

import re
import shutil
from pathlib import Path

import pytest
from markdown_pages import ROOT
from recipes import Recipe, recipes
from two_clusters import two_clusters

from pipelines.query.prompt.commands import COMMANDS
from pipelines.tables import definitions
from pipelines.upkeep.rebuild.rebuild import rebuild


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return two_clusters(tmp_path_factory.mktemp("clusters"))["east"]


@pytest.mark.parametrize("recipe", recipes(is_spark=False), ids=lambda recipe: f"{recipe.page.stem}: {recipe.title}")
def test_the_blocks_run(recipe: Recipe, root: str, capfd: pytest.CaptureFixture[str]) -> None:
    recipe.run(root, {})
    # an assertion in a block is its result; other sections print theirs
    assert capfd.readouterr().out or any("assert " in block.text for block in recipe.blocks)


OF_PAGE = [each for each in recipes(is_spark=False) if each.page.stem == "recipes"]


@pytest.mark.parametrize("recipe", OF_PAGE, ids=lambda recipe: recipe.title)
def test_the_recipes_read_rebuilt_tables(recipe: Recipe, root: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    copy = Path(shutil.copytree(root, tmp_path / "groups"))
    rebuild(str(copy), None, lambda _line: None)
    for name in definitions.WRITE_ORDER:
        # as `rebuild --delete-old` leaves the folder
        shutil.rmtree(copy / name)
    recipe.run(str(copy), {})
    assert capfd.readouterr().out


def sections() -> dict[str, str]:
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    return {part.partition("\n")[0]: part for part in text.split("\n## ")[1:]}


@pytest.mark.parametrize("title", sections())
def test_every_recipe_says_how_it_was_tried(title: str) -> None:
    (first,) = re.findall(r"\A.*\n\n(Run by `(\S+)`|Not tried)\.", sections()[title])
    assert not first[1] or Path(ROOT / first[1]).exists()


def test_the_recipes_that_are_run_are_those_with_blocks() -> None:
    run = {recipe.title for is_spark in (False, True) for recipe in recipes(is_spark=is_spark) if recipe.page.stem == "recipes"}
    # other sections name a test that does not run the blocks of the page
    runs_blocks = r"\n\nRun by `tests/(repository/test_docs_recipes|pipeline/test_(spark_readers|streams_of_histories))\.py`"
    assert run == {title for title, text in sections().items() if re.search(runs_blocks, text)}


def test_the_commands_of_the_prompt_are_documented() -> None:
    page = (ROOT / "docs" / "sql-command.md").read_text(encoding="utf-8")
    documented = re.findall(r"`(\\\S+?)(?: [^`]*)?`", "\n".join(re.findall(r"^\| (`\\.*?) \| ", page, re.MULTILINE)))
    assert documented == list(COMMANDS)
