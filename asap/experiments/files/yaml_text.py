"""YAML from strangers: one document of plain values, without aliases, tags or repeated keys."""

from typing import Any

import yaml

from asap.core.errors import ConfigError
from asap.core.numbers import MOST_DIGITS, bounded
from asap.core.text import plain

_DEEPEST = 32
_STANDARD = "tag:yaml.org,2002:"
_LONGEST_NUMBER = 100
_CONSTRUCTED = {f"{_STANDARD}{name}" for name in ("null", "bool", "int", "float")}
_TEXT = {f"{_STANDARD}{name}" for name in ("str", "timestamp", "value", "merge")}


def parse_yaml(text: str, where: str) -> tuple[Any, dict[str, int]]:
    """The value, and the line of each key of its top level where it is a mapping.

    Raises:
        ConfigError: it is malformed, or more than plain values; with the line.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"is not YAML: {plain(error.problem, 120)}", where=f"{where}{line}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"is not YAML: {plain(error, 120)}", where=where) from error
    if node is None:
        return None, {}
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return _value(loader, node, where), {key.value: key.start_mark.line + 1 for key, _ in pairs}


class _Loader(yaml.SafeLoader):
    """Composes nodes, but no aliases (a few lines of them make gigabytes) and no abyss."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node of the document."""
        mark = self.peek_event().start_mark
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(
                problem="aliases (*name) are not read; write out what they stand for", problem_mark=mark
            )
        if self.depth >= _DEEPEST:
            raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _value(loader: _Loader, node: yaml.Node, where: str) -> Any:
    place = f"{where}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.MappingNode) and node.tag == f"{_STANDARD}map":
        return _mapping(loader, node, where)
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_STANDARD}seq":
        return [_value(loader, item, where) for item in node.value]
    if isinstance(node, yaml.ScalarNode) and node.tag in _TEXT:
        return node.value
    if node.tag not in _CONSTRUCTED:
        raise ConfigError(f"has a tag that is not read: {plain(node.tag, 80)}", where=place)
    try:
        if node.tag == f"{_STANDARD}int" and len(node.value) > _LONGEST_NUMBER:
            raise ValueError(f"a whole number of more than {MOST_DIGITS} digits")
        value = loader.construct_object(node)
        return bounded(value) if isinstance(value, int) else value
    except (yaml.YAMLError, ValueError, KeyError) as error:
        raise ConfigError(f"has a value that cannot be read: {plain(error, 120)}", where=place) from error


def _mapping(loader: _Loader, node: yaml.MappingNode, where: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in node.value:
        place = f"{where}:{key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            raise ConfigError("has a key that is not a word", where=place)
        if key.value in values:
            raise ConfigError(f"{plain(key.value, 60)} is given twice", where=place)
        values[key.value] = _value(loader, value, where)
    return values
