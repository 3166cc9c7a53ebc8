"""Scripts that rules evaluate in a page. They run beside the page's own, and in pages without JavaScript too."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

_FOLDER = Path(__file__).parent
_COMMON = (_FOLDER / "common.js").read_text(encoding="utf-8")


def evaluate(page: Page, name: str, function: str, argument: Any = None) -> Any:
    """Call a function of `NAME.js`, whose functions may use those of common.js."""
    text = f"{_COMMON}\n{(_FOLDER / f'{name}.js').read_text(encoding='utf-8')}"
    return page.evaluate(f"(argument) => {{ {text}\nreturn {function}(argument); }}", argument)


def found(page: Page, name: str, function: str) -> list[str]:
    """The findings that a function without argument returns."""
    result = evaluate(page, name, function)
    assert isinstance(result, list)
    return [str(each) for each in result]
