"""Configuration: defaults in `conf/local.toml`, overridden by a profile or file, overridden by flags."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines.runtime.credentials import resolve
from pipelines.runtime.errors import UsageError

PROFILES = Path(__file__).parent / "conf"
DEFAULTS = PROFILES / "local.toml"
#: Default of an integer that depends on `era` in the same section. Such a key takes this text or an integer.
OF_ERA = "era"
_TYPES = {str: "a string", int: "an integer", bool: "true or false", float: "a fraction", list: "a list", dict: "a section"}

#: Sections with arbitrary keys: settings of Spark, options of the Java client, names of topics, names of roles, values of claims,
#: headers.
_OPEN_SECTIONS = frozenset(
    {
        ("spark", "conf"),
        ("kafka", "jvm"),
        ("coordinator", "topics"),
        ("dashboard", "roles"),
        ("dashboard", "oidc_roles"),
        ("otlp", "headers"),
    }
)


@dataclass(frozen=True)
class Configuration:
    """Resolved configuration: one field per section, keys as in the file. It holds secrets: never print it whole."""

    job: Mapping[str, Any]
    groups: Mapping[str, Any]
    topics: Mapping[str, Any]
    lag: Mapping[str, Any]
    status: Mapping[str, Any]
    metrics: Mapping[str, Any]
    #: May hold keys of a collector.
    otlp: Mapping[str, Any] = field(repr=False)
    dashboard: Mapping[str, Any]
    #: May hold the keys of an object store.
    spark: Mapping[str, Any] = field(repr=False)
    kafka: Mapping[str, Any] = field(repr=False)
    maintain: Mapping[str, Any]
    coordinator: Mapping[str, Any]

    @property
    def kafka_options(self) -> dict[str, str]:
        """Settings of the broker connection that differ from their defaults, as source options."""
        defaults = _read(DEFAULTS)["kafka"]
        return {name: str(value) for name, value in self.kafka.items() if name != "jvm" and value != defaults[name]}


def load_configuration(name: str | None, environment: Mapping[str, str] = os.environ) -> Configuration:
    """Load the defaults, overridden by profile or file `name` (a path, or the name of a file in conf/).

    Raises:
        UsageError: the file is missing or not TOML, a key is unknown, a value has the wrong type, or a named variable is not set.
    """
    merged = _read(DEFAULTS)
    if name is not None:
        path = _find(name)
        _override(merged, _read(path), path, ())
    resolved: dict[str, Any] = _resolve(merged, environment, ())
    return Configuration(**resolved)


def _find(name: str) -> Path:
    profile = PROFILES / f"{name}.toml"
    if profile.is_file() and os.sep not in name:
        return profile
    if Path(name).is_file():
        return Path(name)
    known = ", ".join(sorted(path.stem for path in PROFILES.glob("*.toml")))
    raise UsageError(f"no configuration file {name!r}, and no profile of that name (profiles: {known})")


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"cannot read configuration {path}: {error}") from error


def _override(defaults: dict[str, Any], given: Mapping[str, Any], path: Path, section: tuple[str, ...]) -> None:
    for key, value in given.items():
        name = ".".join((*section, key))
        if section in _OPEN_SECTIONS:
            defaults[key] = value
        elif key not in defaults:
            raise UsageError(f"{path}: unknown key {name} (known: {', '.join(defaults)})")
        elif isinstance(defaults[key], dict):
            if not isinstance(value, dict):
                raise UsageError(f"{path}: {name} is a section, not a value")
            _override(defaults[key], value, path, (*section, key))
        else:
            _require_value(value, defaults[key], f"{path}: {name}")
            defaults[key] = value


def _require_value(value: Any, default: Any, where: str) -> None:
    """Raise UsageError unless `value` has the type of `default` and is in range."""
    lowest = 0
    if default == OF_ERA:
        if type(value) is not int and value != OF_ERA:
            shown = repr(value) if isinstance(value, str) else _TYPES.get(type(value), "a date")
            raise UsageError(f'{where} must be an integer, or "{OF_ERA}" for the default of the era, not {shown}')
    elif type(value) is not type(default):
        raise UsageError(f"{where} must be {_TYPES[type(default)]}, not {_TYPES.get(type(value), 'a date')}")
    elif isinstance(default, int):
        lowest = min(0, default)
    if isinstance(value, int) and value < lowest:
        raise UsageError(f"{where} is {value}: must not be negative")


def _resolve(value: Any, environment: Mapping[str, str], section: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _resolve(part, environment, (*section, key)) for key, part in value.items()}
    if not isinstance(value, str):
        return value
    try:
        return resolve(section[-1], value, environment)
    except ValueError as error:
        raise UsageError(f"configuration {'.'.join(section)}: {error}") from error
