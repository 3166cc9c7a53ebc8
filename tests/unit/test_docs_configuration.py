"""docs/configuration.md lists every key of conf/local.toml with its default, and no other."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEFAULTS = tomllib.loads((ROOT / "conf" / "local.toml").read_text(encoding="utf-8"))
_ROW = re.compile(r"^\| `(\w+)` \| (?:`([^`]*)`)? ?\|", re.MULTILINE)


def sections() -> dict[str, str]:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (\w+)$", page, flags=re.MULTILINE)[1:]
    return {name: text for name, text in zip(parts[::2], parts[1::2], strict=True) if name in DEFAULTS}


def test_every_key_is_listed_with_its_default() -> None:
    listed = {name: dict(_ROW.findall(text)) for name, text in sections().items()}
    assert {name: list(keys) for name, keys in listed.items()} == {name: list(keys) for name, keys in DEFAULTS.items()}
    for section, keys in DEFAULTS.items():
        for key, default in keys.items():
            shown = listed[section][key]
            assert (tomllib.loads(f"v = {shown}")["v"] if shown else {}) == default, f"{section}.{key}"
