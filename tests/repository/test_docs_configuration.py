"""docs/configuration.md lists every key of conf/local.toml with its default, and no other."""

import re
import tomllib
from pathlib import Path

from coordinator_core.group_coordinator.config import ERA_DEFAULTS

ROOT = Path(__file__).parents[2]
DEFAULTS = tomllib.loads((ROOT / "conf" / "local.toml").read_text(encoding="utf-8"))
_ERA_ROW = re.compile(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
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


def test_the_defaults_of_the_eras_are_those_of_the_code() -> None:
    listed = {key: [int(number) for number in numbers] for key, *numbers in _ERA_ROW.findall(sections()["coordinator"])}
    eras = ("0.9", "0.10", "1", "2")
    assert listed == {key: [ERA_DEFAULTS[era][key] for era in eras] for key in ERA_DEFAULTS["4"]}
    assert ERA_DEFAULTS["2"] == ERA_DEFAULTS["3"] == ERA_DEFAULTS["4"]
    assert {key for key, default in DEFAULTS["coordinator"].items() if default == "era"} == set(listed)
