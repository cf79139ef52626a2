"""Flavors of a model as the torchtitan beside a configuration has them (``torchtitan/models/*/__init__.py``), which may
be a fork's own: parsed, never run."""

import ast
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.python_literals import parse_python
from asap.experiments.named_model import SHAPES
from asap.experiments.torchtitan.own_keys import NAMES_OF_SHAPES
from asap.models import Architecture

_TABLE = tomllib.loads(Path(__file__).with_name("flavors.toml").read_text(encoding="utf-8"))
CATALOGUE: dict[str, str] = _TABLE["catalogue"]
OTHERS: dict[str, str] = _TABLE["others"]
_FIELDS: dict[str, str] = _TABLE["fields"]
_DEFAULTS: dict[str, dict[str, Any]] = _TABLE["defaults"]
_MULTIPLIER = "ffn_dim_multiplier"
"""An argument of Llama that is not set by default."""
_AROUND = {*_TABLE["around"]["names"]}
_NAME, _CLASS = re.compile(r"\w+", re.ASCII), "ModelArgs"
_LLAMA = re.compile(r"llama(?:[23]|$)")
_LLAMA3, _LLAMA3_VOCABULARY = re.compile(r"llama3"), 128256
_EXPERTS = {"moe_inter_dim", "num_experts", "top_k", "num_shared_experts"}
_MOST_FOLDERS, _LARGEST = 6, 2**18


def own_model(path: Path, name: str, flavor: str, known: Architecture | None) -> tuple[Architecture, str] | None:
    """The model of a flavor and a note on it; ``None`` where no file tells another than the catalogue.

    Args:
        path: the configuration.
        name: the model's name in it.
        flavor: one of its flavors.
        known: what the catalogue has under them.
    """
    found = next(_calls(path, name, flavor), None)
    if found is None:
        return None
    file, call = found
    said, title = _arguments(call), plain(f"{name} {flavor}", 120)
    defaults = _defaults(file, call)
    where = f"{title} is as {file.parent.name}/{file.name} has it"
    try:
        shapes = _shapes(said, defaults, name, known)
        model = None if shapes is None else Architecture.model_validate({"name": title} | shapes)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ConfigError(f"has shapes of {title} that no model can have", where=str(file)) from error
    if model is not None:
        if known is not None and model == known.model_copy(update={"name": title}):
            return None
        return model, f"{where}, unlike the catalogue" if known else where
    stated = {_FIELDS[key]: value for key, value in said.items() if key in _FIELDS and value not in (None, -1)}
    if known is None:
        return None
    strange = {*said, *defaults} - {*_DEFAULTS.get(_family(name), {*said, *defaults}), *_FIELDS, *_AROUND}
    differs = any(getattr(known, field) != value for field, value in stated.items())
    if differs or any(NAMES_OF_SHAPES.search(key) for key in strange & {*said}):
        return Architecture(name=title), f"{where}, unlike the catalogue, and not read: add {SHAPES}"
    own = plain(", ".join(sorted(strange)), 120)
    note = f"{title} is taken as in the catalogue; {file.parent.name}/{file.name} has {own} of its own"
    return (known.model_copy(update={"name": title}), note) if strange else None


def _calls(path: Path, name: str, flavor: str) -> Iterator[tuple[Path, ast.Call]]:
    """Calls that make the flavor, where a file has one of them, or one below a name with that of the model."""
    for file in _files(path, name):
        calls: list[tuple[str, ast.Call]] = []
        for node in ast.walk(_parsed(file)):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                calls += [
                    (getattr(target, "id", ""), value)
                    for key, value in zip(node.value.keys, node.value.values, strict=True)
                    if isinstance(key, ast.Constant) and key.value == flavor and _gives_arguments(value)
                ]
        fitting = [call for target, call in calls if name in target] or [call for _, call in calls]
        if len(fitting) == 1:
            yield file, fitting[0]


def _gives_arguments(value: ast.expr) -> TypeGuard[ast.Call]:
    """Whether a value is ``TransformerModelArgs(…)``; since 2026 torchtitan has functions instead."""
    return isinstance(value, ast.Call) and getattr(value.func, "id", "").endswith(_CLASS)


def _files(path: Path, name: str) -> Iterator[Path]:
    if not _NAME.fullmatch(name):
        return
    folder = path.absolute().parent
    bare = name.rstrip("0123456789")
    if folder.parent.name == name:
        yield folder.parent / "__init__.py"
    for parent in (folder, *folder.parents)[:_MOST_FOLDERS]:
        yield from (parent / "torchtitan" / "models" / model / "__init__.py" for model in dict.fromkeys((name, bare)))


def _parsed(file: Path) -> ast.AST:
    try:
        if file.is_file() and file.stat().st_size < _LARGEST:
            return parse_python(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError, ConfigError):
        pass
    return ast.Module(body=[], type_ignores=[])


def _arguments(call: ast.Call) -> dict[str, Any]:
    """Arguments by name, those of calls in them beside; what is no literal is ``...``."""
    said: dict[str, Any] = {"": ...} if call.args else {}
    return said | _values((keyword.arg or "", keyword.value) for keyword in call.keywords)


def _values(given: Iterable[tuple[str, ast.expr]]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name, value in given:
        if isinstance(value, ast.Call):
            said |= _arguments(value)
            continue
        try:
            said[name] = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            said[name] = ...
    return said


def _defaults(file: Path, call: ast.Call) -> dict[str, Any]:
    """What the class of the arguments takes where nothing is said, as far as it names shapes."""
    name = getattr(call.func, "id", None)
    for place in ("model/args.py", "args.py", "model/model.py", "model.py"):
        classes = (node for node in ast.walk(_parsed(file.parent / place)) if isinstance(node, ast.ClassDef))
        if found := next((node for node in classes if node.name == name), None):
            fields = (node for node in found.body if isinstance(node, ast.AnnAssign))
            said = _values((ast.unparse(field.target), field.value) for field in fields if field.value is not None)
            return {key: value for key, value in said.items() if NAMES_OF_SHAPES.search(key) and key not in _AROUND}
    return {}


def _shapes(
    said: dict[str, Any], defaults: dict[str, Any], name: str, known: Architecture | None
) -> dict[str, Any] | None:
    """Fields of an architecture, if all arguments are understood."""
    family = _family(name)
    usual = _DEFAULTS.get(family)
    if usual is None or not {*said, *defaults} <= {*usual, *_FIELDS, *_AROUND} or ... in (said | defaults).values():
        return None
    values = usual | defaults | said
    fields = {_FIELDS[key]: value for key, value in values.items() if key in _FIELDS and value not in (None, -1)}
    if family == "llama":
        if _EXPERTS & {*said} or {"head_dim", "hidden_dim"} & {*said}:
            return None
        tokens = _LLAMA3_VOCABULARY if _LLAMA3.match(name) else known and known.vocab
        own = {"kv_heads": values["n_heads"], "vocab": tokens, "head_dim": values["dim"] // values["n_heads"]}
        return own | {"d_ff": _width(values)} | fields
    if not said.get("moe_enabled"):
        return {key: value for key, value in fields.items() if "expert" not in key}
    return fields | {"d_ff": fields["expert_d_ff"]} if {*said} >= _EXPERTS - {"num_shared_experts"} else None


def _family(name: str) -> str:
    return "llama" if _LLAMA.match(name) else name


def _width(values: Mapping[str, Any]) -> int:
    """The hidden width of Llama's MLP (``FeedForward`` in ``llama3/model/model.py``)."""
    wide = int(8 * values["dim"] / 3)
    wide = wide if values.get(_MULTIPLIER) is None else int(values[_MULTIPLIER] * wide)
    return values["multiple_of"] * math.ceil(wide / values["multiple_of"])
