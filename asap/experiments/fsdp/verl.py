"""verl's supervised fine-tuning, as a script starts it or in its YAML: ``torchrun … -m verl.trainer.fsdp_sft_trainer
data.train_batch_size=64 …`` (volcengine/verl, ``verl/trainer/fsdp_sft_trainer.py``)."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought, find_named
from asap.experiments.fsdp.reader import read_program
from asap.experiments.processes import with_processes
from asap.experiments.settings.stack_settings import StackSettings, dotted, overriding
from asap.experiments.several_runs import with_note_on_others
from asap.experiments.shell import Command, has_substitution, read_commands, with_sources, words
from asap.models import Workload
from asap.stacks.registry import spec

_NAME = "fsdp_sft_trainer"
_START = re.compile(r"\bverl[./]trainer[./]fsdp_sft_trainer(?:\.py)?\s(?P<settings>.*)", re.DOTALL)
_OWN_PROGRAM = re.compile(
    r"(?:-m\s+|(?<=\s))(?P<program>(?!torch\.)[\w./-]*sft[\w./-]*)\s(?P<settings>(?:.*\s)?\+*model\.partial_pretrain=.*)",
    re.DOTALL,
)
"""A program of a team's own that takes the same settings."""
_FILE = "verl/trainer/config/sft_trainer.yaml"
_MODEL, _LENGTH, _DTYPE, _RANK = (
    "model.partial_pretrain", "data.max_length", "model.fsdp_config.model_dtype", "model.lora_rank",
)  # fmt: skip
_MICRO_BATCH, _EARLIER, _LIGER = "data.micro_batch_size_per_gpu", "data.micro_batch_size", "model.use_liger"
_OWN = ("data", "model", "optim", "trainer", "use_remove_padding", "ulysses_sequence_parallel_size")
_ASSIGNED = re.compile(r"\+*([A-Za-z][\w.]*)=(.*)", re.ASCII | re.DOTALL)
_OTHER_FILES = ("config_path", "config_name", "config-path", "config-name")
_HALF = ("bf16", "bfloat16")


def is_verl_script(text: str) -> bool:
    """Whether a script starts verl's fine-tuning."""
    return (_NAME in text or f"{_MODEL}=" in text) and any(map(_is_start, read_commands(text)))


def is_verl_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of verl's fine-tuning."""
    model, data = values.get("model"), values.get("data")
    return isinstance(model, dict) and isinstance(data, dict) and "partial_pretrain" in model


def is_setting(key: str) -> bool:
    """Whether an override is one of the settings."""
    return key.partition(".")[0] in _OWN and ("." in key or key in _OWN[-2:])


def read_verl_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with what a script starts, over the YAML of its repository where that is there.

    Raises:
        ConfigError: adapters are trained, a value of the wrong kind, or settings in a file that is not there.
        UsageError: an override is not ``key=value``.
    """
    starts = [command for command in read_commands(with_sources(text, path.parent, brought)) if _is_start(command)]
    start = starts[0]
    found = _start_of(start)
    said = words(found["settings"]) if found else []
    values = dotted(_base(said, path, brought))
    values |= {given[1]: given[2].strip("\"'") for word in said if (given := _ASSIGNED.fullmatch(word))}
    read = _read(values, path, overrides, with_processes(start, experiment))
    if found and (own := found.groupdict().get("program")):
        note = f"{plain(own, 60)} has the settings of verl's {_NAME}, and is taken to train as that does"
        read = read.model_copy(update={"notes": (*read.notes, note)})
    return with_note_on_others(read, path, len(starts), start.line)


def read_verl_file(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what a YAML says; raises like :func:`read_verl_script`."""
    return _read(dotted(values), path, overrides, experiment)


def _read(values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    said = {**values, **overriding(overrides)}
    unsettled = {key for key, value in said.items() if has_substitution(str(value))}
    known = {key: value for key, value in said.items() if key not in unsettled and not _is_null(value)}
    settings = StackSettings(known, str(path))
    notes: tuple[str, ...] = ()
    if (settings.whole(_RANK) or 0) > 0:
        reason = f"{_RANK}={plain(known[_RANK], 20)}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=settings.where(), hint=f"give a run with {_RANK}=0")
    if _EARLIER in settings and _MICRO_BATCH not in overriding(overrides):
        unsettled.add(_MICRO_BATCH)
        notes = (f"{_EARLIER} means another thing by version: add {_MICRO_BATCH}=…",)
    length = settings.count(_LENGTH, int(spec("verl").defaults[_LENGTH])) if _LENGTH not in unsettled else None
    workload = Workload(
        sequence_length=length,
        precision="bf16",
        weight_precision="bf16" if settings.text(_DTYPE) in _HALF else None,
        optimizer="adamw",
        attention="flash",
        fused_linear_cross_entropy=True if settings.flag(_LIGER) else None,
    )
    model = None if _is_null(said.get(_MODEL)) else str(said[_MODEL])
    read = read_program(settings, spec("verl"), path, experiment, model, workload, frozenset(unsettled))
    cut = () if length is None else (f"sequences are cut at {length} tokens ({_LENGTH}); all are taken as that long",)
    return read.model_copy(update={"notes": (*read.notes, *notes, *cut)})


def _base(said: Iterable[str], path: Path, brought: Brought | None) -> Mapping[str, Any]:
    """The YAML that a command names, or that of the repository; nothing where the latter is not there.

    Raises:
        ConfigError: the one that it names is not there.
    """
    named = [word for word in said if word.lstrip("-").partition("=")[0] in _OTHER_FILES]
    file = next((word.partition("=")[2] for word in named if word.endswith((".yaml", ".yml"))), None)
    found = find_named(file or _FILE, path, brought) if file or not named else None
    if named and found is None:
        shown = plain(" ".join(named), 80)
        raise ConfigError(f"takes its settings by {shown}, which is not there", where=str(path), hint="give that YAML")
    return found.document().values if found else {}


def _is_null(value: Any) -> bool:
    return value is None or str(value) in ("null", "~", "")


def _is_start(command: Command) -> bool:
    return not command.assigns and command.certain and _start_of(command) is not None


def _start_of(command: Command) -> re.Match[str] | None:
    """verl's own program, or another one with its settings."""
    return _START.search(command.text) or _OWN_PROGRAM.search(command.text)
