"""Benchmark definitions of MaxText (benchmarks/maxtext_*_model_configs.py): ``MaxTextModel(…)`` where it is literal.

A definition has a name, the model that it runs, the settings that it tunes, and compiler flags from a file beside it.
"""

import ast
import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.files import is_file
from asap.core.text import plain
from asap.experiments.files.documents import read_text
from asap.experiments.files.python_literals import (
    CLASS,
    UNKNOWN,
    Lookup,
    is_literal,
    module_environment,
    names_of,
    parse_python,
    value_of,
)
from asap.experiments.launch.launch import Launch
from asap.flags.environment import FLAG_VARIABLES, is_performance_variable

_INSTEAD = (
    "a Python program is not run: give its configuration, or the model's config.json with --hardware, --batch, --plan"
)
_CALL = "MaxTextModel"
_FILES = "*_model_configs.py"


@dataclass(frozen=True)
class Definition:
    """A benchmark: the settings that it starts MaxText with."""

    name: str
    model: str
    line: int
    settings: dict[str, Any]
    unknown: tuple[str, ...] = ()
    flags: str | None = None
    aliases: tuple[str, ...] = field(default=())
    environment: dict[str, str] = field(default_factory=dict)

    def launch(self) -> Launch:
        """What the benchmark runner makes of it."""
        said = {"model_name": self.model} | self.settings
        overrides = tuple(f"{key}={json.dumps(value)}" for key, value in said.items())
        environment = self.environment | ({FLAG_VARIABLES[0]: self.flags} if self.flags else {})
        return Launch(None, overrides, self.line, unknown=self.unknown, environment=environment)


def read_definitions(path: Path) -> tuple[Definition, ...]:
    """All definitions of a file.

    Raises:
        ConfigError: it is no Python, or has none.
    """
    found = definitions_of(read_text(path), path)
    if not found:
        reason = f"has no recipe of NeMo, configuration of torchtitan or literal {_CALL}(…) of MaxText that is read"
        raise ConfigError(reason, where=str(path), hint=_INSTEAD)
    return found


def definitions_of(text: str, path: Path) -> tuple[Definition, ...]:
    """The definitions in some Python, which may name modules beside ``path``.

    Raises:
        ConfigError: it is no Python.
    """
    tree = parse_python(text, str(path))
    lookup = _neighbours(path.parent)
    names = names_of(tree, lookup)
    said = module_environment(tree, names, lookup)
    environment = {name: value for name, value in said.items() if is_performance_variable(name)}
    calls = (_definition(call, alias, names, lookup) for call, alias in _calls(tree))
    return tuple(replace(definition, environment=environment) for definition in calls if definition is not None)


def find_definition(definitions: tuple[Definition, ...], name: str | None, where: str) -> Definition:
    """The definition of a name, as the benchmark runner looks it up: hyphens and underscores are one.

    Raises:
        ConfigError: there is none, or none is named and there are several.
    """
    if name is None and len(definitions) == 1:
        return definitions[0]
    known = {_key(alias): one for one in reversed(definitions) for alias in (*one.aliases, one.name)}
    if name is not None and _key(name) in known:
        return known[_key(name)]
    near = difflib.get_close_matches(_key(name or ""), known, n=3, cutoff=0.4) or sorted(known)[:5]
    if name is None:
        hint = f"name one: model_name={near[0]}"
        raise ConfigError(f"defines {len(definitions)} benchmarks", where=where, hint=hint)
    raise ConfigError(f"has no benchmark {plain(name, 60)}", where=where, hint=f"nearest: {', '.join(near)}")


def definition_files(script: Path) -> Iterator[Path]:
    """Files with definitions beside a script, or in a folder ``benchmarks`` above it."""
    for folder in (script.parent, *(parent / "benchmarks" for parent in script.absolute().parents)):
        yield from sorted(folder.glob(_FILES))


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str | None]]:
    for statement in tree.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        alias = target.id if isinstance(target, ast.Name) else None
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == _CALL:
                yield node, alias


def _definition(call: ast.Call, alias: str | None, names: dict[str, Any], lookup: Lookup) -> Definition | None:
    given = {keyword.arg: value_of(keyword.value, names, lookup) for keyword in call.keywords if keyword.arg}
    name, model = given.get("model_name"), given.get("model_type")
    if not (isinstance(name, str) and isinstance(model, str)):
        return None
    said = given.get("tuning_params", {})
    every = said if isinstance(said, dict) and CLASS not in said else {"tuning_params": UNKNOWN}
    settings = {key: value for key, value in every.items() if is_literal(value)}
    flags = given.get("xla_flags")
    flags = (" ".join(flags.split()) or None) if isinstance(flags, str) else None
    return Definition(
        name, model, call.lineno, settings, tuple(every.keys() - settings.keys()), flags, (alias,) if alias else ()
    )


def _neighbours(folder: Path) -> Lookup:
    """Names of modules that lie in the same folder, each read once."""
    modules: dict[str, dict[str, Any]] = {}

    def lookup(module: str, name: str) -> Any:
        if module not in modules:
            path = folder / f"{module}.py"
            modules[module] = {}
            if is_file(path):
                modules[module] = names_of(parse_python(read_text(path), str(path)), lookup)
        return modules[module].get(name, UNKNOWN)

    return lookup


def _key(name: str) -> str:
    return name.replace("-", "_")
