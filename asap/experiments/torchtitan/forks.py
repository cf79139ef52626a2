"""What a fork of torchtitan has of its own: settings, and flavors of models in its Python, parsed and never run."""

import ast
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UnreadError
from asap.core.text import plain
from asap.experiments.huggingface_model import SHAPES
from asap.models import Architecture
from asap.stacks.registry import irrelevant
from asap.stacks.stack_settings import StackSettings
from asap.stacks.torchtitan import settings as titan

_SECTIONS = ("model", "parallelism", "activation_checkpoint")
_KNOWN = titan.TABLE.words() | irrelevant("torchtitan")
"""Of all versions from December 2023 to August 2026."""
NAMES_OF_SHAPES = re.compile(
    r"(?:^|_)(?:moe|experts?|dim|heads?|kv|hidden|ffn|mlp|vocab\w*|layers?|window|depth|width|mtp|rank|quantizers?)(?:_|$)"
)
"""Names of what decides a model's shapes."""
_OUTSIDE = re.compile(r"\.(?:padded_)?vocab(?:ulary)?_size$|^training\.\w*accum")
"""Settings that no torchtitan has, and that by their name are a vocabulary or accumulate gradients."""
_MOST = 8
_ISLANDS, _EVERY = "fault_tolerance.semi_sync_method", "fault_tolerance.sync_steps"


def own_shapes(settings: StackSettings) -> str | None:
    """Settings of ``[model]`` that no torchtitan has and that by their name change its shapes; ``None`` without."""
    found = [key for key in _own(settings, ("model",)) if NAMES_OF_SHAPES.search(key)]
    return _listed(found) if found else None


def notes_on_own(settings: StackSettings) -> tuple[str, ...]:
    """Notes on settings whose effect is not known, and on replicas that go their own way for some steps."""
    shapes = [key for key in _own(settings, ("model",)) if NAMES_OF_SHAPES.search(key)]
    others = [key for key in _own(settings, _SECTIONS) if key not in shapes]
    notes = [f"not read, as no torchtitan has it: {_listed(others)}"] if others else []
    if settings.get(_ISLANDS) not in (None, "") and settings.flag("fault_tolerance.enable"):
        every = plain(settings.get(_EVERY, "some"), 20)
        notes.append(f"replicas exchange what they learnt once in {every} steps ({_ISLANDS}); taken as in every step")
    return tuple(notes)


def _own(settings: StackSettings, sections: Iterable[str]) -> list[str]:
    parts = ((key, key.split(".")) for key in settings if "." in key)
    return [key for key, words in parts if words[0] in sections and ".".join(words[:2]) not in _KNOWN]


def _listed(keys: list[str]) -> str:
    return plain(", ".join(keys[:_MOST]), 240) + (", …" if len(keys) > _MOST else "")


_ADAPTERS = re.compile(r"(?<![a-z])(?:q?lora|dora|peft|adapters?)(?![a-z])", re.IGNORECASE)
_CONVERTERS, _FLAVOR = "model.converters", "model.flavor"
_ENABLED = ("enable", "enabled", "use")
_OFF = ("false", "none", "0", "")


def refuse_unread(settings: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where adapters are trained, or a fork has a vocabulary or an accumulation of its own."""
    if (
        own := next((key for key in settings if _OUTSIDE.search(key) and not key.startswith("model.")), None)
    ) is not None:
        reason = f"sets {plain(own, 60)}, which no torchtitan has and which by its name changes the step"
        hint = "give the file without it, with model.vocab=N or --batch N as it makes them"
        raise UnreadError(reason, where=str(path), hint=hint)
    named = next((key for key in (_CONVERTERS, _FLAVOR) if _ADAPTERS.search(str(settings.get(key) or ""))), None)
    sections = (str(key).rpartition(".")[0] for key in settings)
    section = next((one for one in sections if _ADAPTERS.fullmatch(one.rpartition(".")[2])), None)
    switches = [str(settings[key]) for name in _ENABLED if (key := f"{section}.{name}") in settings]
    if any(switch.casefold() in _OFF for switch in switches):
        section = None
    if found := named or section:
        shown = f"{found} = {plain(settings[found], 40)}" if named else plain(found, 60)
        reason = f"{shown}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains all of them")


_TABLE = tomllib.loads(Path(__file__).with_name("flavors.toml").read_text(encoding="utf-8"))
CATALOGUE: dict[str, str] = _TABLE["catalogue"]
OTHERS: dict[str, str] = _TABLE["others"]
DEBUG_MODEL = Architecture.model_validate(_TABLE["debugmodel"])
_FIELDS: dict[str, str] = _TABLE["fields"]
_DEFAULTS: dict[str, dict[str, Any]] = _TABLE["defaults"]
_MULTIPLIER = "ffn_dim_multiplier"
"""An argument of Llama that is not set by default."""
_USUAL = {"multiple_of", "qk_norm"}
"""Arguments that a flavor may leave to its class."""
_AROUND = {*_TABLE["around"]["names"]}
_NAME, _CLASS = re.compile(r"\w+", re.ASCII), "ModelArgs"
_LLAMA, _LLAMA3_VOCABULARY = re.compile(r"llama(?:[23]|$)"), 128256
_MOST_FOLDERS, _LARGEST = 6, 2**18


def own_model(path: Path, name: str, flavor: str, known: Architecture | None) -> tuple[Architecture, str] | None:
    """The model of a flavor and a note on it; ``None`` where no file tells another than the catalogue.

    Args:
        path: the configuration.
        name: the model's name in it.
        flavor: one of its flavors.
        known: what the catalogue has under them.
    """
    file, said = next(_flavors(path, name, flavor), (None, {}))
    if file is None:
        return None
    title, where = plain(f"{name} {flavor}", 120), f"is as {file.parent.name}/{file.name} has it"
    usual = _DEFAULTS.get("llama" if _LLAMA.match(name) else name, {})
    own = {key for key in said if NAMES_OF_SHAPES.search(key) and key not in {*usual, *_FIELDS, *_AROUND}}
    literal = {*usual} - _USUAL <= said.keys() and usual and not own and ... not in said.values()
    model = printed_model({"vocab_size": _vocabulary(name, known), **usual, **said}, title) if literal else None
    if model is None and known is not None:
        stated = {_FIELDS[key]: value for key, value in said.items() if key in _FIELDS and value not in (None, -1)}
        if own or any((getattr(known, field) or 0) != value for field, value in stated.items()):
            return Architecture(name=title), f"{title} {where}, unlike the catalogue, and not read: add {SHAPES}"
    if model is None or (known is not None and model == known.model_copy(update={"name": title})):
        return None
    return model, f"{title} {where}" + (", unlike the catalogue" if known else "")


def _vocabulary(name: str, known: Architecture | None) -> int | None:
    return _LLAMA3_VOCABULARY if name.startswith("llama3") else known and known.vocab


def printed_model(values: Mapping[str, Any], title: str) -> Architecture | None:
    """The model of all arguments that torchtitan has for it; ``None`` where they do not say all of it, or cannot be."""
    fields = {_FIELDS[key]: value for key, value in values.items() if key in _FIELDS and value not in (None, -1)}
    try:
        own = {"kv_heads": values["n_heads"], "head_dim": values["dim"] // values["n_heads"]}
        width = {} if values.get("hidden_dim") else {"d_ff": _width(values)}
        width = {"d_ff": fields["expert_d_ff"]} if values.get("moe_enabled") else width
        return Architecture.model_validate({"name": title or None} | own | fields | width)
    except (ValueError, TypeError, KeyError, ArithmeticError):
        return None


def _flavors(path: Path, name: str, flavor: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Files that make the flavor by one call, ``TransformerModelArgs(…)``, each with its arguments."""
    for file in _files(path, name):
        try:
            text = file.read_text(encoding="utf-8") if file.is_file() and file.stat().st_size < _LARGEST else ""
            tables = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assign | ast.AnnAssign)]
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        found = [(ast.unparse(table).partition("=")[0], call) for table in tables for call in _calls(table, flavor)]
        calls = [call for target, call in found if name in target] or [call for _, call in found]
        if len(calls) == 1:
            yield file, _arguments(calls[0])


def _calls(table: ast.Assign | ast.AnnAssign, flavor: str) -> Iterator[ast.Call]:
    pairs = zip(table.value.keys, table.value.values, strict=True) if isinstance(table.value, ast.Dict) else ()
    named = (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == flavor)
    yield from (one for one in named if isinstance(one, ast.Call) and getattr(one.func, "id", "").endswith(_CLASS))


def _files(path: Path, name: str) -> Iterator[Path]:
    if not _NAME.fullmatch(name):
        return
    folder = path.absolute().parent
    bare = name.rstrip("0123456789")
    if folder.parent.name == name:
        yield folder.parent / "__init__.py"
    for parent in (folder, *folder.parents)[:_MOST_FOLDERS]:
        yield from (parent / "torchtitan" / "models" / model / "__init__.py" for model in dict.fromkeys((name, bare)))


def _arguments(call: ast.Call) -> dict[str, Any]:
    """Arguments by name, those of calls in them beside; what is no literal is ``...``."""
    said: dict[str, Any] = {"": ...} if call.args else {}
    for keyword in call.keywords:
        if isinstance(keyword.value, ast.Call):
            said |= _arguments(keyword.value)
            continue
        try:
            said[keyword.arg or ""] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            said[keyword.arg or ""] = ...
    return said


def _width(values: Mapping[str, Any]) -> int:
    """The hidden width of Llama's MLP (``FeedForward`` in ``llama3/model/model.py``)."""
    wide = int(8 * values["dim"] / 3)
    wide = wide if values.get(_MULTIPLIER) is None else int(values[_MULTIPLIER] * wide)
    return values["multiple_of"] * math.ceil(wide / values["multiple_of"])
