"""What a fork of torchtitan has of its own: settings, and flavors of models in its Python, parsed and never run."""

import ast
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.huggingface_model import SHAPES
from asap.models import Architecture
from asap.plans.plan import Plan
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
_VOCABULARY = re.compile(r"\.(?:padded_)?vocab(?:ulary)?_size$")
_MOST = 8
_ISLANDS, _EVERY = "fault_tolerance.semi_sync_method", "fault_tolerance.sync_steps"


def own_vocabulary(settings: StackSettings) -> str | None:
    """A setting outside of ``[model]`` that no torchtitan has and that by its name is the vocabulary's size."""
    return next((key for key in settings if _VOCABULARY.search(key) and not key.startswith("model.")), None)


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


def unknown_shapes(listed: str, model: str) -> str:
    """The note on a model that they change."""
    return f"the model is unknown: torchtitan has no {listed}, which by its name changes {model}: add {SHAPES}"


def _own(settings: StackSettings, sections: Iterable[str]) -> list[str]:
    parts = ((key, key.split(".")) for key in settings if "." in key)
    return [key for key, words in parts if words[0] in sections and ".".join(words[:2]) not in _KNOWN]


def _listed(keys: list[str]) -> str:
    return plain(", ".join(keys[:_MOST]), 240) + (", …" if len(keys) > _MOST else "")


_STEPS = re.compile(r"training\.(?:gradient|grad)?_?accum(?:ulation)?(?:_steps)?", re.ASCII)


def with_global_batch(settings: StackSettings, plan: Plan | None) -> tuple[StackSettings, tuple[str, ...]]:
    """The settings with the batch of all steps that a fork accumulates, and a note on them.

    Args:
        settings: of a run.
        plan: on its devices; without one nothing is added.
    """
    key = next((key for key in settings if _STEPS.fullmatch(key)), None)
    steps = settings.count(key) if key else None
    if plan is None or key is None or steps in (None, 1) or str(settings.get(titan.GLOBAL_BATCH, -1)) != "-1":
        return settings, ()
    batch = steps * titan.global_batch_of(settings, plan.batch_shards)
    note = f"{plain(key, 60)}={steps}, which no torchtitan has, is read by its name: {steps} microbatches to an update"
    return settings.overridden({titan.GLOBAL_BATCH: batch}), (note,)


_ADAPTERS = re.compile(r"(?<![a-z])(?:q?lora|dora|peft|adapters?)(?![a-z])", re.IGNORECASE)
_CONVERTERS, _FLAVOR = "model.converters", "model.flavor"
_ENABLED = ("enable", "enabled", "use")
_OFF = ("false", "none", "0", "")


def refuse_adapters(settings: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where adapters are trained."""
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


def printed_model(values: Mapping[str, Any], title: str) -> Architecture | None:
    """The model of arguments that torchtitan printed with all defaults; ``None`` where they do not say all of it."""
    fields = {_FIELDS[key]: value for key, value in values.items() if key in _FIELDS and value not in (None, -1)}
    try:
        own = {"kv_heads": values["n_heads"], "head_dim": values["dim"] // values["n_heads"]}
        width = {} if values.get("hidden_dim") else {"d_ff": _width(values)}
        return Architecture.model_validate({"name": title or None} | own | width | fields)
    except (ValueError, TypeError, KeyError, ArithmeticError):
        return None


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
            return ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
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
            said = _values(
                (getattr(field.target, "id", ""), field.value) for field in fields if field.value is not None
            )
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
