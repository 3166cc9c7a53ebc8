"""Scripts that rules evaluate in a page. They run beside the page's own, and in pages without JavaScript too."""

from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import JSHandle, Page

_FOLDER = Path(__file__).parent
_COMMON = (_FOLDER / "common.js").read_text(encoding="utf-8")


def evaluate(page: Page, name: str, function: str, argument: Any = None) -> Any:
    """Call a function of `NAME.js`, whose functions may use those of common.js."""
    return page.evaluate(f"(argument) => {{ {_text(name)}\nreturn {function}(argument); }}", argument)


def functions(page: Page, name: str, *names: str) -> JSHandle:
    """An object with functions of `NAME.js`, for many calls: Chromium compiles them once."""
    return page.evaluate_handle(f"() => {{ {_text(name)}\nreturn {{ {', '.join(names)} }}; }}")


@cache
def _text(name: str) -> str:
    return f"{_COMMON}\n{(_FOLDER / f'{name}.js').read_text(encoding='utf-8')}"


def found(page: Page, name: str, function: str) -> list[str]:
    """The findings that a function without argument returns."""
    result = evaluate(page, name, function)
    assert isinstance(result, list)
    return [str(each) for each in result]
