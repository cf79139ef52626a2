"""Python programs that train by Hugging Face's Trainer with arguments of their own: ``TrainingArguments(…)`` or
``SFTConfig(…)``, and the model that is loaded, as far as they are literal: parsed, never run."""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UnreadError
from asap.core.text import plain
from asap.experiments.accelerate.trainer_file import read_trl_file
from asap.experiments.experiment import Experiment
from asap.experiments.files.python_literals import (
    ARGUMENTS,
    CLASS,
    UNKNOWN,
    NotLiteral,
    is_literal,
    names_of,
    parse_python,
    value_of,
)
from asap.experiments.settings.trainer_numerics import SEQUENCE_NAMES
from asap.stacks.accelerate.stack import OPTION
from asap.stacks.trainer.arguments import RECOMPUTE, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH

_LIBRARIES = re.compile(r"^[ \t]*(?:from|import) (?:transformers|trl|unsloth)\b", re.MULTILINE)
_MADE = re.compile(r"\b(?:TrainingArguments|SFTConfig)\(")
_ARGUMENTS = re.compile(r"(?:^|\.)(TrainingArguments|SFTConfig)$")
_OF_METHODS = re.compile(
    r"(?:^|\.)(?:DPO|GRPO|PPO|KTO|ORPO|CPO|BCO|RLOO|GKD|Reward|PRM|OnlineDPO|XPO)(?:Config|Trainer)$"
)
_LOADS = re.compile(r"(?:^|\.)(?P<kind>\w{0,80}Model\w{0,80}|\w{1,80}For\w{1,80})\.from_pretrained$")
_DECODERS = re.compile(r"ForCausalLM|LMHeadModel|FastLanguageModel$|FastModel$")
_ADAPTERS = re.compile(r"(?:^|\.)(?:LoraConfig|get_peft_model|BitsAndBytesConfig|prepare_model_for_kbit_training)$")
_ENABLES = re.compile(r"\.gradient_checkpointing_enable$")
_TRAINER = "Trainer"
_DEFAULTS = {TRAINER_MICRO_BATCH: 8, TRAINER_ACCUMULATION: 1}
_OF_TRAINER = {RECOMPUTE: False}
"""Of ``TrainingArguments``; versions of ``SFTConfig`` differ."""
_DECISIVE = (TRAINER_MICRO_BATCH, TRAINER_ACCUMULATION, RECOMPUTE, OPTION, "fsdp_config", "deepspeed", "bf16", "fp16")
_OF_MODEL = ("torch_dtype", "dtype", "attn_implementation", *SEQUENCE_NAMES)
"""Arguments of loading a model that say something of a step."""
_MODEL, _NAMES = "model_name_or_path", ("pretrained_model_name_or_path", "model_name", "model")
_TRAINERS = re.compile(r"(?:^|\.)(?:SFT)?Trainer$")
"""They may load the model by its name."""
_INSTEAD = "give a run that trains all parameters of a decoder on tokens"


def is_trainer_program(text: str) -> bool:
    """Whether a program sets the Trainer's arguments itself."""
    if _LIBRARIES.search(text) is None or _MADE.search(text) is None:
        return False
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = [ast.unparse(call.func) for call in calls]
    return any(map(_says_arguments, calls)) and any(name.endswith(_TRAINER) for name in called)


def _says_arguments(call: ast.Call) -> bool:
    """Whether a call makes the Trainer's arguments, and says more than a folder."""
    return _ARGUMENTS.search(ast.unparse(call.func)) is not None and len(call.keywords) > 1


def read_trainer_program(text: str, path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with the arguments that a program sets.

    Raises:
        ConfigError: it trains something else than all of a decoder on tokens, an argument that decides its step is one
            that only a run can tell, or what reading them as a file raises.
        UsageError: an override is not ``key=value``.
    """
    tree, overrides = parse_python(text, str(path)), list(overrides)
    calls = sorted((node for node in ast.walk(tree) if isinstance(node, ast.Call)), key=lambda call: call.lineno)
    _check_trains_decoder(calls, path)
    names = names_of(tree)
    call = next(call for call in calls if _says_arguments(call))
    said = {**_DEFAULTS, **({} if ast.unparse(call.func).endswith("SFTConfig") else _OF_TRAINER)}
    said |= _of_model(calls, names, path) | _arguments(call, names, path)
    if any(_named(_ENABLES, call) for call in calls):
        said[RECOMPUTE] = UNKNOWN if _is_chosen(tree) else True
    given = {override.partition("=")[0] for override in overrides}
    unsaid = [key for key in _DECISIVE if said.get(key) is UNKNOWN and key not in given]
    if unsaid:
        reason, ask = f"sets {', '.join(unsaid)} to what only a run can tell", " ".join(f"{key}=…" for key in unsaid)
        raise UnreadError(reason, where=f"{path}:{call.lineno}", hint=f"add {ask}")
    stated = {key: value for key, value in said.items() if is_literal(value) and value is not None}
    read = read_trl_file(stated, path, overrides, experiment)
    made = plain(ast.unparse(call.func), 40)
    place = f"arguments of the program stand in {made}(…), line {call.lineno} of {path.name}, as name=value"
    return read.model_copy(update={"notes": (*read.notes, place)})


def _named(pattern: re.Pattern[str], call: ast.Call) -> re.Match[str] | None:
    return pattern.search(ast.unparse(call.func))


def _is_chosen(tree: ast.Module) -> bool:
    """Whether recomputation is turned on under a condition."""
    conditions = (node for node in ast.walk(tree) if isinstance(node, ast.If))
    inner = (node for condition in conditions for node in ast.walk(condition) if isinstance(node, ast.Call))
    return any(_named(_ENABLES, call) for call in inner)


def _check_trains_decoder(calls: Iterable[ast.Call], path: Path) -> None:
    """Raise ConfigError where a program makes adapters, or trains by another method."""
    for pattern, what in (
        (_OF_METHODS, "trains on preferences or rewards, which is not modelled"),
        (_ADAPTERS, "trains adapters: training a part of the parameters is not modelled"),
    ):
        if (found := next((call for call in calls if _named(pattern, call)), None)) is not None:
            reason = f"{what} ({plain(ast.unparse(found.func), 40)})"
            raise ConfigError(reason, where=f"{path}:{found.lineno}", hint=_INSTEAD)


def _arguments(call: ast.Call, names: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The arguments of a call by name; raises UnreadError where only a run can tell what is laid out in it."""
    found = value_of(call, names)
    if isinstance(found, NotLiteral):
        reason = f"{plain(ast.unparse(call.func), 40)} takes what only a run can tell"
        raise UnreadError(reason, where=f"{path}:{call.lineno}", hint="give its arguments as a YAML")
    known = {key: value if is_literal(value) else UNKNOWN for key, value in found.items()}
    return {key: value for key, value in known.items() if key not in (CLASS, ARGUMENTS)}


def _of_model(calls: Iterable[ast.Call], names: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The name of the model that is loaded, and how; nothing of it where several are."""
    loads = [(call, found["kind"]) for call in calls if (found := _named(_LOADS, call))]
    other = next(((call, kind) for call, kind in loads if "For" in kind and not _DECODERS.search(kind)), None)
    if other is not None:
        reason = f"loads {other[1]}, which is no decoder of tokens"
        raise ConfigError(reason, where=f"{path}:{other[0].lineno}", hint=_INSTEAD)
    decoders = [call for call, kind in loads if _DECODERS.search(kind)]
    decoders = decoders or [call for call in calls if _named(_TRAINERS, call)]
    made = value_of(decoders[0], names) if len(decoders) == 1 else UNKNOWN
    if not isinstance(made, dict):
        return {}
    name = next(iter(made[ARGUMENTS]), next((made[key] for key in _NAMES if key in made), UNKNOWN))
    own = {key: value for key, value in made.items() if key in _OF_MODEL and isinstance(value, str | int)}
    return {**own, _MODEL: name} if isinstance(name, str) else own
