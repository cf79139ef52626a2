"""YAML of NeMo and Megatron-Bridge, and scripts that start NeMo: ``python megatron_gpt_pretraining.py
--config-path=conf --config-name=gpt trainer.num_nodes=4 model.micro_batch_size=2`` (Hydra's command line), also in
quotes, ``srun bash -c "…"``.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import below_variable, find_named, missing
from asap.experiments.files.hydra_defaults import is_hydra_key, laid_over
from asap.experiments.megatron.reader import is_argument, read_megatron, read_words
from asap.experiments.shell import Command, Start, has_substitution, options, words
from asap.experiments.training_program import check_program, refuse
from asap.stacks.megatron.sections import BRIDGE, NEMO, argument_of, arguments_of, dialect
from asap.stacks.megatron.workload import PRECISION
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, dotted

_PROGRAM = re.compile(r"(?<![\w./-])[\w./-]{0,400}\b(?:megatron_\w{1,200}|train_gpt_sft)\.py\b")
_SECTIONS = ("trainer", "model", "exp_manager")
_ASSIGNED = re.compile(rf"\+{{0,2}}((?:{'|'.join(_SECTIONS)})\.[\w.]+)=(.*)", re.ASCII | re.DOTALL)
_DEFAULTS = (
    ("train_gpt_sft", "gpt_sft"),
    ("finetuning", "megatron_gpt_finetuning_config"),
    ("sft", "megatron_gpt_sft"),
    ("pretraining", "megatron_gpt_config"),
)
"""What a program takes where its command names no configuration, by its name (``examples/nlp/language_modeling`` of
NeMo, ``examples/nlp/gpt`` of NeMo-Aligner)."""
_SIZES = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
_SHAPES = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups")
_OPTIMIZER, _GRANULARITY = "optimizer", "recompute_granularity"


def read_nemo(
    values: Mapping[str, Any],
    kind: str,
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
    unsettled: frozenset[str] = frozenset(),
) -> Experiment:
    """``experiment`` with what a YAML of NeMo or Megatron-Bridge says; raises like :func:`read_megatron`."""
    values, overrides = laid_over(values, overrides)
    refuse(spec("nemo"), StackSettings(dotted(values), str(path)))
    found, open_ = arguments_of(values, kind)
    archive = str(values["model"].get("restore_from_path") or "")
    notes = [
        f"{path.name}: {key} is {plain(value, 60)}, which is not resolved"
        for key, value in open_.items()
        if not key.startswith(("data", "tokenizer"))
    ]
    if "num_layers" not in found and archive.endswith(".nemo"):
        notes.append(f"the architecture is inside {plain(archive, 80)}, which is not opened")
    if kind == BRIDGE and "_target_" not in values["model"]:
        notes.append(f"{path.name} is laid over a recipe, which decides what it does not say")
        if shapes := sorted(key for key in _SHAPES if found.pop(key, None) is not None):
            notes.append(f"{', '.join(shapes)} of the recipe's model are changed: say the whole model")
        unsettled = _left_to_recipe(found, isinstance(values.get("mixed_precision"), str))
    settings = StackSettings(found, str(path))
    experiment = experiment.knowing(*notes)
    return read_megatron(settings, overrides, experiment, kind, unsettled)


def _left_to_recipe(found: Mapping[str, Any], says_precision: bool) -> frozenset[str]:
    """What is open in a YAML that is laid over a recipe."""
    granularity = found.get(_GRANULARITY)
    known = granularity == "full" or (granularity == "selective" and "recompute_modules" in found)
    recomputation = () if known else spec("megatron").names["recomputation"]
    precision = () if says_precision else PRECISION
    said = {key for key, value in found.items() if value not in (None, False)}
    return frozenset({*_SIZES, *precision, *recomputation, _OPTIMIZER} - said)


def starts(command: Command) -> bool:
    """Whether a command starts NeMo with a configuration that it names, or with the one of its program."""
    return _started(command) is not None


def read_nemo_script(started: Start, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with the YAML that a script names, and the settings of its command.

    Raises:
        ConfigError: the YAML is not there, or describes no decoder.
        UsageError: an override is not ``key=value``.
    """
    start, path = _started(started.command), started.path
    assert start is not None
    program, named = start
    check_program(program, path)
    found = None if has_substitution(named) else find_named(named, path, started.files)
    if found is None:
        raise missing("starts NeMo with", named, path, "lay it beside the script")
    values = found.document().values
    if dialect(values) != NEMO:
        raise ConfigError("describes no language model of NeMo", where=str(found.path))
    given = [*overrides]
    settled = {override.partition("=")[0].lstrip("+~") for override in given}
    assigned = (_ASSIGNED.fullmatch(word) for word in words(started.command.text))
    said = {each[1]: each[2] for each in assigned if each and each[1] not in settled}
    unknown = sorted(key for key, value in said.items() if has_substitution(value))
    taken = [f"{key}={'null' if key in unknown else value}" for key, value in said.items()]
    unsettled = frozenset(argument_of(key) for key in unknown)
    read = read_nemo(values, NEMO, found.path, [*taken, *given], experiment, unsettled)
    shown = [key for key in unknown if argument_of(key) in read_words()]
    note = f"set by a variable whose value is not said: {plain(', '.join(shown), 160)}"
    return read.knowing(*([note] if shown else []))


def is_setting(key: str) -> bool:
    """Whether an override is one of NeMo's settings, in Hydra's grammar."""
    return is_hydra_key(dict.fromkeys(_SECTIONS), key) or ("." not in key and is_argument(key))


def _started(command: Command) -> tuple[str, str] | None:
    """The program of NeMo's that a command starts, and its configuration; ``None`` where it is not NeMo."""
    program = _PROGRAM.search(command.text)
    if program is None:
        return None
    default = next((name for word, name in _DEFAULTS if word in program[0]), None)
    said = {option.name: option.words[0] for option in options(command.text) if option.words}
    if (name := said.get("config_name", default)) is None:
        return None
    name = name if name.endswith((".yaml", ".yml")) else f"{name}.yaml"
    return program[0], str(PurePosixPath(below_variable(said.get("config_path", "conf"))) / name)
