"""Python programs that train by Hugging Face's Trainer with arguments of their own: ``TrainingArguments(…)`` or
``SFTConfig(…)``, and the model that is loaded, as far as they are literal: parsed, never run."""

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.accelerate.trl import read_trl_file
from asap.experiments.deepspeed.training_arguments import SEQUENCE_NAMES
from asap.experiments.experiment import Experiment
from asap.experiments.launch.python.calls import Program, Site
from asap.experiments.launch.python.conditions import truth
from asap.experiments.launch.python.defaults import notes_on
from asap.experiments.launch.python.literals import parse_python
from asap.experiments.launch.python.objects import CLASS, UNKNOWN
from asap.experiments.launch.python.values import value_of
from asap.plans.accelerate.trainer_option import OPTION
from asap.plans.deepspeed.trainer import RECOMPUTE, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH

_LIBRARIES = re.compile(r"^[ \t]*(?:from|import) (?:transformers|trl|unsloth)\b", re.MULTILINE)
_MADE = re.compile(r"\b(?:TrainingArguments|SFTConfig)\(")
_ARGUMENTS = re.compile(r"(?:^|\.)(TrainingArguments|SFTConfig)$")
_OF_METHODS = re.compile(
    r"(?:^|\.)(?:DPO|GRPO|PPO|KTO|ORPO|CPO|BCO|RLOO|GKD|Reward|PRM|OnlineDPO|XPO)(?:Config|Trainer)$"
)
_LOADS = re.compile(r"(?:^|\.)(?P<kind>\w*Model\w*|\w+For\w+|\w+LMHeadModel)\.from_pretrained$")
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
    program, overrides = Program(parse_python(text, str(path))), list(overrides)
    site = next(program.sites(_says_arguments))
    _check_trains_decoder(program, path)
    said = {**_DEFAULTS, **({} if ast.unparse(site.call.func).endswith("SFTConfig") else _OF_TRAINER)}
    said |= _of_model(program, path) | _words(site, program, path)
    if any(_is_reached(each, program) for each in _calls(program, _ENABLES)):
        said[RECOMPUTE] = True
    given = {override.partition("=")[0] for override in overrides}
    unsaid = [key for key in _DECISIVE if said.get(key) is UNKNOWN and key not in given]
    if unsaid:
        reason, ask = f"sets {', '.join(unsaid)} to what only a run can tell", " ".join(f"{key}=…" for key in unsaid)
        raise ConfigError(reason, where=f"{path}:{site.call.lineno}", hint=f"add {ask}")
    told = {key: value for key, value in said.items() if value is not UNKNOWN and value is not None}
    read = read_trl_file(told, path, overrides, experiment)
    made = plain(ast.unparse(site.call.func), 40)
    place = f"arguments of the program stand in {made}(…), line {site.call.lineno} of {path.name}, as name=value"
    return read.model_copy(update={"notes": (*read.notes, place, *notes_on(program.functions.taken))})


def _check_trains_decoder(program: Program, path: Path) -> None:
    """Raise ConfigError where a program makes adapters, or trains by another method, or another model."""
    for pattern, what in (
        (_OF_METHODS, "trains on preferences or rewards, which is not modelled"),
        (_ADAPTERS, "trains adapters: training a part of the parameters is not modelled"),
    ):
        sites = (site for site in _calls(program, pattern) if _is_reached(site, program))
        if (found := next(sites, None)) is not None:
            reason = f"{what} ({plain(ast.unparse(found.call.func), 40)})"
            raise ConfigError(reason, where=f"{path}:{found.call.lineno}", hint=_INSTEAD)


def _calls(program: Program, pattern: re.Pattern[str]) -> Iterator[Site]:
    return program.sites(lambda call: pattern.search(ast.unparse(call.func)) is not None)


def _is_reached(site: Site, program: Program) -> bool:
    """Whether a call is made, or may be: no condition on the way to it is known not to hold."""
    for node, following in pairwise(site.way):
        if isinstance(node, ast.If) and isinstance(following, ast.stmt):
            held = truth(node.test, lambda part: value_of(part, site.names, program.functions))
            if held is (following not in node.body):
                return False
    return True


def _words(site: Site, program: Program, path: Path) -> dict[str, Any]:
    """The arguments of a call by name, also those of a mapping that is laid out in it.

    Raises:
        ConfigError: only a run can tell what is laid out in it.
    """
    found: dict[str, Any] = {}
    for word in site.call.keywords:
        value = _literal(value_of(word.value, site.names, program.functions))
        if word.arg is not None:
            found[word.arg] = value
        elif isinstance(value, dict):
            found |= {key: _literal(inner) for key, inner in value.items()}
        else:
            what = f"{plain(ast.unparse(site.call.func), 40)} takes {plain(ast.unparse(word.value), 40)}"
            raise ConfigError(
                f"{what}, which only a run can tell", where=f"{path}:{site.call.lineno}", hint="give them as a YAML"
            )
    return {key: value for key, value in found.items() if isinstance(key, str) and key.isidentifier()}


def _literal(value: Any) -> Any:
    """A value that is no object which a call makes."""
    return UNKNOWN if isinstance(value, dict) and value.get(CLASS, "dict") != "dict" else value


def _of_model(program: Program, path: Path) -> dict[str, Any]:
    """The name of the model that is loaded, and how; nothing of it where several are."""
    loads = [(site, found["kind"]) for site, found in _loads(program)]
    other = next(((site, kind) for site, kind in loads if "For" in kind and not _DECODERS.search(kind)), None)
    if other is not None:
        reason = f"loads {other[1]}, which is no decoder of tokens"
        raise ConfigError(reason, where=f"{path}:{other[0].call.lineno}", hint=_INSTEAD)
    decoders = [site for site, kind in loads if _DECODERS.search(kind)] or list(_calls(program, _TRAINERS))
    if len(decoders) != 1:
        return {}
    site = decoders[0]
    said = {word.arg: value_of(word.value, site.names, program.functions) for word in site.call.keywords if word.arg}
    name = next((said[key] for key in _NAMES if key in said), UNKNOWN)
    if site.call.args:
        name = value_of(site.call.args[0], site.names, program.functions)
    own = {key: value for key, value in said.items() if key in _OF_MODEL and isinstance(value, str | int)}
    return {**own, _MODEL: name} if isinstance(name, str) else own


def _loads(program: Program) -> Iterator[tuple[Site, re.Match[str]]]:
    for site in _calls(program, _LOADS):
        found = _LOADS.search(ast.unparse(site.call.func))
        assert found is not None
        yield site, found
