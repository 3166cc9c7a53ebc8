"""requirements.lock has a permitted version of every dependency that pyproject.toml names."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKED = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE))
REQUIREMENTS = [
    *PROJECT["project"]["dependencies"],
    *(line for extra in PROJECT["project"]["optional-dependencies"].values() for line in extra),
    *(line for group in PROJECT["dependency-groups"].values() for line in group),
]


@pytest.mark.parametrize("line", [line for line in REQUIREMENTS if Requirement(line).name != PROJECT["project"]["name"]])
def test_the_locked_version_is_an_allowed_one(line: str) -> None:
    requirement = Requirement(line)
    name = canonicalize_name(requirement.name)
    assert name in LOCKED, "run: make lock"
    assert requirement.specifier.contains(LOCKED[name]), f"{name}=={LOCKED[name]} is locked: run: make lock"
