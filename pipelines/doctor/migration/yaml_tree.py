"""YAML as plain values. Aliases are refused: a few lines of them stand for more nodes than memory holds."""

from typing import Any

import yaml


class YamlError(ValueError):
    """Text that is not YAML, or YAML of a kind that is not read."""


class _PlainLoader(yaml.SafeLoader):
    """PyYAML's safe loader, without aliases."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise YamlError("it has YAML aliases (*name), which are not read: write the values out")
        return super().compose_node(parent, index)


def parse_yaml(text: str) -> Any:
    """The values of one YAML document. Raises YamlError; RecursionError if it is nested too deeply."""
    loader = _PlainLoader(text)
    try:
        return loader.get_single_data()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise YamlError(f"not YAML{'' if mark is None else f': line {mark.line + 1}'}") from error
    finally:
        loader.dispose()
