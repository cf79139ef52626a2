"""A configuration file with settings changed and everything else, comments too, as it was."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from asap.core.errors import ConfigError
from asap.experiments.files.yaml_text import parse_yaml


def edited_toml(text: str, changes: str) -> str:
    """TOML with the tables of other TOML written over it.

    Raises:
        ConfigError: either is no TOML, or a table is to replace a value.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document, wanted = tomlkit.parse(text), tomlkit.parse(changes).unwrap()
        for *tables, name, value in _leaves(wanted):
            inner: Any = document
            for table in tables:
                inner = inner.setdefault(table, tomlkit.table())
            inner[name] = value
        return tomlkit.dumps(document)
    except (TOMLKitError, AttributeError, TypeError) as error:
        raise ConfigError("is no TOML that these tables can be written over") from error


def edited_yaml(text: str, changes: str) -> str:
    """YAML with the keys of other YAML written over it; a key that it lacks comes last in its section.

    Raises:
        ConfigError: either is no mapping, or it says a key in a way that no single place can be changed.
    """
    expected, wanted = (parse_yaml(each, "configuration")[0] for each in (text, changes))
    try:
        for *sections, name, value in _leaves(wanted):
            text = _set_key(text, sections, name, yaml.safe_dump(value, default_flow_style=True).split("\n...")[0])
            inner = expected
            for section in sections:
                inner = inner.setdefault(section, {})
            inner[name] = value
        if parse_yaml(text, "configuration")[0] == expected:
            return text
    except (yaml.YAMLError, AttributeError, TypeError, ValueError, IndexError):
        pass
    raise ConfigError("is no YAML that these keys can be written over")


def _leaves(values: Any, *outer: str) -> Iterator[tuple[Any, ...]]:
    """Each value behind the keys that lead to it."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, *outer, key)
        else:
            yield *outer, key, value


def _set_key(text: str, sections: list[str], name: str, value: str) -> str:
    node: Any = yaml.compose(text, yaml.SafeLoader)
    path = [*sections, name]
    while path and (found := next((each for key, each in node.value if key.value == path[0]), None)) is not None:
        node, path = found, path[1:]
    start, end = node.start_mark.index, node.end_mark.index
    if not path:
        return f"{text[:start]}{' ' * (text[start - 1] == ':')}{value.strip()}{text[end:]}"
    if node.flow_style:
        added = f"{': {'.join(path)}: {value.strip()}{'}' * (len(path) - 1)}"
        return f"{text[: end - 1]}{', ' if node.value else ''}{added}{text[end - 1 :]}"
    column = node.start_mark.column
    added = "\n".join(f"{' ' * (column + 2 * depth)}{key}:" for depth, key in enumerate(path))
    while not isinstance(node, yaml.ScalarNode) and not node.flow_style:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    end = len(text[: node.end_mark.index].rstrip())
    end += len(text[end:].partition("\n")[0])
    return f"{text[:end]}\n{added} {value.strip()}{text[end:]}"
