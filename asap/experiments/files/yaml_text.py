"""YAML from strangers: one document of plain values, without tags or repeated keys, and with few aliases."""

import re
from typing import Any

import yaml

from asap.core.errors import ConfigError
from asap.core.numbers import MOST_DIGITS, bounded
from asap.core.text import plain

_DEEPEST = 32
_MOST_REPEATED = 10_000  # values that all aliases of a document may stand for: a few lines of them make gigabytes
_STANDARD = "tag:yaml.org,2002:"
_LONGEST_NUMBER = 100
_TEMPLATE = re.compile(r"\{\{.{0,2000}?\}\}|\{%")
_CONSTRUCTED = {f"{_STANDARD}{name}" for name in ("null", "bool", "int", "float")}
_MERGE = f"{_STANDARD}merge"
_TEXT = {"!include", *(f"{_STANDARD}{name}" for name in ("str", "timestamp", "value"))}
"""Tags of text; a file that another is said to include stays the name of one."""


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
        hint = "it is a template: give the file that is made from it" if _TEMPLATE.search(text) else None
        raise ConfigError(f"is not YAML: {plain(error.problem, 120)}", where=f"{where}{line}", hint=hint) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"is not YAML: {plain(error, 120)}", where=where) from error
    if node is None:
        return None, {}
    value = _Reading(loader, where).value(node)
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return value, {key.value: key.start_mark.line + 1 for key, _ in pairs if key.tag != _MERGE}


class _Alias(yaml.Node):
    """A place where a node stands again."""


class _Loader(yaml.SafeLoader):
    """Composes nodes, aliases as such, and no abyss."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node of the document."""
        mark = self.peek_event().start_mark
        if self.check_event(yaml.AliasEvent):
            target = super().compose_node(parent, index)
            return _Alias("alias", target, mark, mark)
        if self.depth >= _DEEPEST:
            raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Reading:
    """Nodes turned into values."""

    def __init__(self, loader: _Loader, where: str):
        self._loader, self._where = loader, where
        self._depth = self._aliases = self._repeated = 0

    def value(self, node: yaml.Node) -> Any:
        """The value of a node; an alias stands for a new one."""
        self._repeated += self._aliases > 0
        if self._repeated > _MOST_REPEATED or self._depth > _DEEPEST:
            reason = f"has aliases (*name) that stand for more than {_MOST_REPEATED:,} values, or for themselves"
            raise ConfigError(reason, where=self._place(node), hint="write out what they stand for")
        alias = isinstance(node, _Alias)
        self._depth, self._aliases = self._depth + 1, self._aliases + alias
        value = self.value(node.value) if alias else self._written(node)
        self._depth, self._aliases = self._depth - 1, self._aliases - alias
        return value

    def _written(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_STANDARD}map":
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_STANDARD}seq":
            return [self.value(item) for item in node.value]
        if isinstance(node, yaml.ScalarNode) and node.tag in _TEXT:
            return node.value
        if node.tag not in _CONSTRUCTED:
            raise ConfigError(f"has a tag that is not read: {plain(node.tag, 80)}", where=self._place(node))
        try:
            if node.tag == f"{_STANDARD}int" and len(node.value) > _LONGEST_NUMBER:
                raise ValueError(f"a whole number of more than {MOST_DIGITS} digits")
            value = self._loader.construct_object(node)
            return bounded(value) if isinstance(value, int) else value
        except (yaml.YAMLError, ValueError, KeyError) as error:
            reason = f"has a value that cannot be read: {plain(error, 120)}"
            raise ConfigError(reason, where=self._place(node)) from error

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        values: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError("has a key that is not a word", where=self._place(key))
            if key.tag == _MERGE:
                merged = self._merged(self.value(value), key) | merged
                continue
            if key.value in values:
                raise ConfigError(f"{plain(key.value, 60)} is given twice", where=self._place(key))
            values[key.value] = self.value(value)
        return {**merged, **values} if merged else values

    def _merged(self, value: Any, key: yaml.Node) -> dict[str, Any]:
        """What ``<<`` adds: a mapping, or several of which the first wins."""
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise ConfigError("merges (<<) what is no mapping", where=self._place(key))
        return {name: part[name] for part in reversed(parts) for name in part}

    def _place(self, node: yaml.Node) -> str:
        return f"{self._where}:{node.start_mark.line + 1}"
