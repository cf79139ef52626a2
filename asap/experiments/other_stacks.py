"""Configurations of other training stacks, recognised by what they are: read, or told what to give instead."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from asap.core.errors import ConfigError, UsageError
from asap.core.text import plain
from asap.core.toml import parse_toml
from asap.experiments.deepspeed import llama_factory
from asap.experiments.deepspeed import reader as deepspeed
from asap.experiments.deepspeed import script as deepspeed_script
from asap.experiments.documents import Document, read_text
from asap.experiments.experiment import Experiment
from asap.experiments.megatron import arguments as megatron
from asap.experiments.megatron import nemo
from asap.experiments.megatron.reader import CORE, read_megatron, read_megatron_script, read_nemo
from asap.experiments.nanotron import reader as nanotron
from asap.experiments.record_file import FIELDS, apply_field_overrides
from asap.experiments.shell import SCRIPTS
from asap.experiments.torchtitan import reader as torchtitan

_TOML = ".toml"
_INSTEAD = "give the model's config.json as --config, and --hardware, --batch, --sequence and --plan"


@dataclass(frozen=True)
class Unread:
    """A stack that is known and not read."""

    name: str
    instead: str
    fits: Callable[[Mapping[str, Any]], bool]


def _within(values: Mapping[str, Any], *path: str) -> Any:
    node: Any = values
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node


UNREAD = (
    Unread(
        "torchtune recipe",
        _INSTEAD,
        lambda v: any("torchtune" in str(_within(v, key, "_component_")) for key in ("model", "tokenizer")),
    ),
    Unread(
        "Axolotl configuration",
        _INSTEAD,
        lambda v: "base_model" in v and bool({"sequence_len", "micro_batch_size", "datasets", "adapter"} & v.keys()),
    ),
    Unread(
        "Levanter configuration",
        _INSTEAD,
        lambda v: (
            isinstance(v.get("trainer"), dict)
            and bool(
                {
                    "mp",
                    "train_batch_size",
                    "fsdp_axis",
                    "batch_axis",
                    "per_device_parallelism",
                    "mesh",
                    "model_axis_size",
                }
                & v["trainer"].keys()
            )
        ),
    ),
    Unread(
        "GPT-NeoX configuration",
        _INSTEAD,
        lambda v: bool(
            {"pipe_parallel_size", "pipe-parallel-size", "model_parallel_size", "model-parallel-size"} & v.keys()
        ),
    ),
    Unread(
        "Lingua configuration",
        _INSTEAD,
        lambda v: (
            isinstance(v.get("distributed"), dict) and {"fsdp_type", "dp_shard"} & v["distributed"].keys() != set()
        ),
    ),
    Unread("AXLearn configuration", _INSTEAD, lambda v: "axlearn." in f"{v.get('klass')} {v.get('model')}"),
    Unread(
        "NeMo configuration of another model than a decoder",
        "give the configuration of a language model (model.num_layers, model.hidden_size …)",
        lambda v: (
            "trainer" in v
            and bool({"exp_manager", "model", "init_from_nemo_model"} & v.keys())
            and nemo.dialect(v) is None
        ),
    ),
    Unread(
        "Accelerate configuration",
        "give the model's config.json or the DeepSpeed JSON as --config",
        lambda v: "distributed_type" in v and "num_processes" in v,
    ),
)

_PROGRAMS = (
    (re.compile(r"^\s*(from|import) axlearn\b", re.MULTILINE), "AXLearn program", _INSTEAD),
    (
        re.compile(r"^\s*(from|import) torchtitan\b", re.MULTILINE),
        "torchtitan program",
        "give its settings as a TOML job configuration (sections model, training, parallelism)",
    ),
    (
        re.compile(r"^\s*(from|import) (nemo|nemo_run|megatron\.bridge)\b", re.MULTILINE),
        "NeMo or Megatron-Bridge recipe",
        "give the YAML that a run of it writes (run_config.yaml)",
    ),
    (re.compile(r"^[\w.\[\]']*klass: '?axlearn\.", re.MULTILINE), "AXLearn configuration", _INSTEAD),
)


_LAUNCHED = (
    (re.compile(r"(?:^|[\s;&])(?:swift|megatron) (?:sft|pt|rlhf)\b"), "script of ms-swift", _INSTEAD),
    (
        re.compile(r"\bllamafactory-cli +train\b"),
        "script of LLaMA-Factory",
        "give the YAML that it trains as --config, and its settings as key=value",
    ),
    (re.compile(r"\baxolotl(?:\.cli\.train| train)\b"), "script of Axolotl", _INSTEAD),
)
"""Launchers by the command that starts them."""
_LEVANTER = re.compile(r"^\w+:\s*!include\b(?=.*^trainer:)|^trainer:(?=.*^\w+:\s*!include\b)", re.MULTILINE | re.DOTALL)
"""Its own tag is no YAML that is read (``data: !include data/openwebtext.yaml``)."""


def read_as_text(path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment | None:
    """``experiment`` with a script or a TOML file of another stack; ``None`` if it is none of theirs.

    Raises:
        ConfigError: it is one that is not read (the hint says what to give), or malformed.
    """
    if path.suffix == _TOML:
        values = parse_toml(read_text(path), str(path))
        if not torchtitan.is_torchtitan(values):
            sections = plain(", ".join(values), 80) or "nothing"
            raise ConfigError(f"is not a torchtitan configuration: it has {sections}", where=str(path))
        theirs, ours = _split(overrides, torchtitan.is_setting)
        return _with_fields(torchtitan.read_torchtitan(values, path, theirs, experiment), ours)
    if path.suffix in SCRIPTS:
        text = read_text(path)
        _refuse_found(_LAUNCHED, text, path)
        if megatron.is_megatron_script(text):
            theirs, ours = _split(overrides, megatron.is_argument)
            return _with_fields(read_megatron_script(text, path, theirs, experiment), ours)
        if deepspeed_script.is_deepspeed_script(text):
            theirs, ours = _split(overrides, deepspeed.is_setting)
            experiment, ours = _with_model_fields(experiment, ours)
            return _with_fields(deepspeed_script.read_deepspeed_script(text, path, theirs, experiment), ours)
    if path.suffix in (".yaml", ".yml") and _LEVANTER.search(read_text(path)):
        _refuse("Levanter configuration with files that it includes", _INSTEAD, path)
    if path.suffix in (".py", ".txt"):
        _refuse_found(_PROGRAMS, read_text(path), path)
    return None


def read_as_document(document: Document, overrides: Iterable[str], experiment: Experiment) -> Experiment | None:
    """``experiment`` with a YAML or JSON file of another stack; ``None`` if it is none of theirs; raises likewise."""
    values, path = document.values, document.path
    if "schema" in values or ("model_type" in values and "base_model" not in values):
        return None
    for stack in UNREAD:
        if stack.fits(values):
            _refuse(stack.name, stack.instead, path)
    if llama_factory.is_training_file(values):
        theirs, ours = _split(overrides, llama_factory.is_setting)
        experiment, ours = _with_model_fields(experiment, ours)
        return _with_fields(llama_factory.read_training_file(values, path, theirs, experiment), ours)
    if nanotron.is_nanotron(values):
        theirs, ours = _split(overrides, nanotron.is_setting)
        return _with_fields(nanotron.read_nanotron(values, path, theirs, experiment), ours)
    if torchtitan.is_torchtitan(values) and "parallelism" in values:
        theirs, ours = _split(overrides, torchtitan.is_setting)
        return _with_fields(torchtitan.read_torchtitan(values, path, theirs, experiment), ours)
    if kind := nemo.dialect(values):
        theirs, ours = _split(overrides, megatron.is_argument)
        return _with_fields(read_nemo(values, kind, path, theirs, experiment), ours)
    if (found := megatron.mapping_arguments(values, path, document.lines)) is not None:
        theirs, ours = _split(overrides, megatron.is_argument)
        return _with_fields(read_megatron(found, theirs, experiment, CORE), ours)
    if deepspeed.is_deepspeed(values):
        theirs, ours = _split(overrides, deepspeed.is_setting)
        experiment, ours = _with_model_fields(experiment, ours)
        return _with_fields(deepspeed.read_deepspeed(values, path, theirs, experiment), ours)
    return None


def _refuse_found(known: Iterable[tuple[re.Pattern[str], str, str]], text: str, path: Path) -> None:
    for pattern, name, instead in known:
        if pattern.search(text):
            _refuse(name, instead, path)


def _refuse(name: str, instead: str, path: Path) -> NoReturn:
    article = "an" if name[0] in "AEIOU" else "a"
    raise ConfigError(f"is {article} {name}, which is not read", where=str(path), hint=instead)


def _split(overrides: Iterable[str], theirs: Callable[[str], bool]) -> tuple[list[str], dict[str, str]]:
    """Overrides of the stack's own settings, and those of an experiment's fields."""
    stack: list[str] = []
    fields: dict[str, str] = {}
    for override in overrides:
        key, separator, value = override.partition("=")
        if theirs(key):
            stack.append(override)
        elif not separator:
            raise UsageError("is not key=value", where=plain(override, 80) or "(empty)")
        elif key.partition(".")[0] not in FIELDS:
            raise ConfigError(
                f"unknown key {plain(key, 60)}", where="override", hint="neither the stack nor a record has it"
            )
        else:
            fields[key] = value
    return stack, fields


def _with_model_fields(experiment: Experiment, fields: dict[str, str]) -> tuple[Experiment, dict[str, str]]:
    """The experiment with the model that is said, and the other fields."""
    named = {key: value for key, value in fields.items() if key.partition(".")[0] == "model"}
    return _with_fields(experiment, named), {key: value for key, value in fields.items() if key not in named}


def _with_fields(experiment: Experiment, fields: Mapping[str, str]) -> Experiment:
    return apply_field_overrides(experiment, fields) if fields else experiment
