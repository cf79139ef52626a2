"""A program with the Trainer's arguments, under Accelerate, DeepSpeed or neither, by the table of what shards it
(huggingface/accelerate, ``commands/config/config_args.py``; transformers, ``TrainingArguments``)."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.accelerate.arguments import (
    ARGUMENTS,
    KINDS,
    OWN,
    add_file,
    add_model,
    command_options,
    mapping_of,
    notes_on,
    settled,
    split_overrides,
)
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Brought, blamed_on, find_named, named_document, open_variable
from asap.experiments.launch.refusal import check_arguments
from asap.experiments.processes import set_devices, set_nodes
from asap.experiments.remarks import note_on_attention
from asap.experiments.shell import has_substitution
from asap.experiments.tables.deepspeed import named_configuration
from asap.experiments.tables.reader import read_table, sources_of
from asap.stacks.accelerate import stack as accelerate
from asap.stacks.accelerate.stack import FSDP, KIND, OPTION, SIZES, fsdp_option, is_fsdp
from asap.stacks.deepspeed import stack as inline
from asap.stacks.deepspeed.stack import ACCUMULATION, MICRO_BATCH, SEQUENCE, TENSOR
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, dotted
from asap.stacks.trainer.arguments import AUTO, RECOMPUTE, SECTION, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH, precision

PRESETS: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    Path(accelerate.__file__).with_name("presets.toml").read_text(encoding="utf-8")
)
LAUNCH_FILE = "accelerate_config"  # TRL's argument that names a configuration of Accelerate
DEEPSPEED, _ACCELERATOR, _FSDP = "deepspeed", "accelerator_config", "fsdp_config"
_SHARDS = {DEEPSPEED: "FILE.json", OPTION: "full_shard"}  # arguments that make the program shard, each with a value
_REPLICATED = ("MULTI_GPU", "MULTI_NPU", "MULTI_XPU", "MULTI_HPU", "MULTI_MLU", "MULTI_MUSA", "NO")
_ON_EIGHT = {accelerate.PROCESSES: 8, accelerate.MACHINES: 1, "mixed_precision": "bf16"}
_PROFILES = PRESETS["trl"]  # configurations of Accelerate that TRL brings along
_REPLICAS = (
    f"taken as replicas, as Accelerate starts it where nothing else is configured: add {LAUNCH_FILE}=FILE.yaml, or"
    " one of TRL's such as fsdp2"
)


def is_accelerate(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of Accelerate."""
    return KIND in values and len(OWN & values.keys()) >= 2


def read_accelerate(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what a configuration says, and overrides of it and of the program's arguments.

    Raises:
        ConfigError: a value of the wrong kind, not all parameters are trained, or a file that it names is not there.
        UsageError: an override is not ``key=value``.
    """
    for section in (FSDP, SIZES, inline.CONFIG):
        if not isinstance(values.get(section) or {}, Mapping):
            raise ConfigError(f"{section} is not a mapping", where=str(path))
    return read_program(Program(path, {}, dotted(values)), overrides, experiment)


@dataclass(frozen=True)
class Program:
    """A program with the Trainer's arguments, and what it is started under.

    Args:
        path: the file that says them.
        arguments: by name, also those that only a run can tell; one may name a YAML of further ones.
        launched: settings of Accelerate by dotted key that its launcher says; the arguments say what shards where
            these do not.
        files: that come along with it.
        defaults: what the program takes where it is told nothing.
        of_yaml: whether the arguments are the top level of a YAML file.
        launches: whether the arguments hold options of Accelerate's launcher, as TRL's do.
    """

    path: Path
    arguments: Mapping[str, Any]
    launched: Mapping[str, Any]
    files: Brought = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    of_yaml: bool = False
    launches: bool = False


def read_program(program: Program, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with a program under what shards it; raises like :func:`read_accelerate`."""
    path, files = program.path, program.files
    own, more, rest = split_overrides(overrides)
    written = add_file({**program.arguments, **more}, path, files)
    stated = settled(written)
    unsaid = {key: str(value) for key, value in written.items() if value is not None and key not in stated}
    configuration, notes = {**program.launched}, list[str]()
    if KIND not in configuration:
        configuration |= _configuration_of(stated, path, files) | (command_options(stated) if program.launches else {})
        replicated = (configuration | own).get(KIND) == "MULTI_GPU"
        if program.launches and replicated and not stated.keys() & {LAUNCH_FILE, OPTION, *KINDS}:
            notes.append(_REPLICAS)
        if program.launches and (named := str(stated.get(LAUNCH_FILE))) in _PROFILES:
            notes.append(f"{LAUNCH_FILE} {named} is TRL's own: settings of Accelerate belong into a copy of it")
        if not program.launches:
            stated.setdefault(OPTION, "")
    assumed = {key: value for key, value in program.defaults.items() if key not in stated and key not in unsaid}
    if "fp16" in stated:
        assumed.pop("bf16", None)
    said, settings = StackSettings(stated | assumed, str(path)), StackSettings(configuration | own, str(path))
    kind = str(settings.get(KIND, "NO")).upper()
    by_deepspeed = kind == "DEEPSPEED"
    check_arguments({key: value for key, value in stated.items() if key != SEQUENCE or not by_deepspeed}, path)
    experiment = _set_devices(settings, experiment)
    if kind in _REPLICATED:
        if key := next((key for key in _SHARDS if key in unsaid), None):
            reason = f"the program's {key} is set by a variable whose value is not said"
            raise ConfigError(reason, where=str(path), hint=f"add {key}={_SHARDS[key]}, or {key}=false")
        named = said.get(DEEPSPEED)
        if isinstance(named, Mapping) or str(named).endswith(".json"):
            by_deepspeed, settings = True, settings.overridden({KIND: "DEEPSPEED", inline.IN_FILE: named})
    elif kind not in ("FSDP", "DEEPSPEED"):
        raise settings.wrong(KIND, f"FSDP, DEEPSPEED or {_REPLICATED[0]}: others are not read")
    run = _Run(program, said, settings, unsaid, add_model(said, path, experiment))
    read = run.under_deepspeed(rest) if by_deepspeed else run.under_accelerate()
    undecided = sorted(unsaid.keys() & ARGUMENTS)
    variables = dict.fromkeys(plain(name, 40) for key in undecided if (name := open_variable(unsaid[key])))
    ask = f"; add {' '.join(f'{name}=…' for name in variables)}" if variables else ""
    notes += [f"set by a variable whose value is not said: {', '.join(undecided)}{ask}"] if undecided else []
    if assumed:
        listed = ", ".join(f"{key}={str(value).lower()}" for key, value in assumed.items())
        notes.append(f"not said, and taken as the program has it today: {listed}")
    return read.knowing(
        *notes, *notes_on(said), provenance=sources_of(spec("trainer"), StackSettings(stated, str(path)))
    )


_FILLED = {
    MICRO_BATCH: TRAINER_MICRO_BATCH,
    ACCUMULATION: TRAINER_ACCUMULATION,
    "bf16.enabled": "bf16",
    "fp16.enabled": "fp16",
    SEQUENCE: "sequence_parallel_size",
    TENSOR: "deepspeed_autotp_size",
}
"""DeepSpeed's settings by the argument that fills them."""


@dataclass(frozen=True)
class _Run:
    """A program with what is said of it: its arguments, settings of Accelerate, and arguments that are left open."""

    program: Program
    said: StackSettings
    settings: StackSettings
    unsaid: Mapping[str, str]
    known: Experiment

    def under_accelerate(self) -> Experiment:
        """A run whose processes FSDP or nothing shards, by Accelerate's table with the arguments in their section."""
        said, path, known = self.said, self.program.path, dict[str, Any](self.said)
        if RECOMPUTE in said:
            known[RECOMPUTE] = said.flag(RECOMPUTE)
        if _ACCELERATOR in said:
            known[_ACCELERATOR] = mapping_of(said, _ACCELERATOR, path, self.program.files)
        if TRAINER_MICRO_BATCH in said:
            known.setdefault(TRAINER_ACCUMULATION, AUTO if TRAINER_ACCUMULATION in self.unsaid else 1)
        values = {**self.settings, **{f"{SECTION}.{key}": value for key, value in known.items()}}
        top = {TRAINER_MICRO_BATCH} & said.keys() if self.program.of_yaml and LAUNCH_FILE not in said else ()
        read = read_table(spec("accelerate"), values, path, (), self.known)
        return read.knowing(hyperparameters={key: said[key] for key in top})

    def under_deepspeed(self, overrides: Iterable[str]) -> Experiment:
        """A run that DeepSpeed shards, by its table with what the arguments fill and say beside it."""
        said, path, named = self.said, self.program.path, self.settings.get(inline.IN_FILE)
        configuration, notes = self._configuration(named)
        by_name = isinstance(said.get(DEEPSPEED), str) and not said[DEEPSPEED].endswith(".json")
        place = "" if self.program.of_yaml else f"{SECTION}."
        kept = ARGUMENTS if by_name else ARGUMENTS - {DEEPSPEED}
        stated = {f"{place}{key}": value for key, value in dotted(said).items() if key in kept}
        of_accelerate = {KIND: self.settings[KIND]} if named is None else {}
        values = {**of_accelerate, **stated, **configuration, **self._fillings(configuration)}
        read = read_table(spec("deepspeed"), values, path, overrides, self.known)
        recorded: dict[str, Any] = {}
        if TRAINER_MICRO_BATCH in said:
            if not self.program.of_yaml:
                recorded[f"{SECTION}.{TRAINER_ACCUMULATION}"] = read.hyperparameters.get(ACCUMULATION, 1)
            left = (MICRO_BATCH,) if self.program.of_yaml else (MICRO_BATCH, ACCUMULATION)
            recorded |= {key: AUTO for key in left if configuration.get(key) == AUTO}
        return read.knowing(*notes, *note_on_attention(said), hyperparameters=recorded)

    def _configuration(self, named: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
        """DeepSpeed's settings, of the file that is named or as Accelerate says them, with the program's precision."""
        said, settings = self.said, self.settings
        computed = precision(said, settings)
        if named is not None:
            found, notes = named_configuration(named, self.program.path, self.program.files)
            decided = [kind for kind in ("bf16", "fp16") if found.get(f"{kind}.enabled") == AUTO and computed]
        else:
            decided, notes = ["bf16", "fp16"], ()
            found: dict[str, Any] = {"zero_optimization.stage": 2, ACCUMULATION: AUTO, MICRO_BATCH: AUTO}
            found |= {key: settings[word] for key, word in inline.OF_ACCELERATE.items() if word in settings}
            found |= {ACCUMULATION: AUTO} if TRAINER_ACCUMULATION in said else {}
        found = found | {f"{kind}.enabled": computed == kind for kind in decided}
        sequence = settings.get(f"{SIZES}.sp_size", settings.get(f"{SIZES}.{SIZES}_sp_size"))
        return found | ({} if sequence is None else {SEQUENCE: sequence}), notes

    def _fillings(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        """What arguments fill; gradients of one microbatch, the Trainer's default, where none says accumulation."""
        said, unsaid = self.said, self.unsaid
        for key, name in ((MICRO_BATCH, TRAINER_MICRO_BATCH), (ACCUMULATION, TRAINER_ACCUMULATION)):
            if name in said and str(other := configuration.get(key, AUTO)) not in (AUTO, str(said[name])):
                reason = f"the Trainer refuses {name}={plain(str(said[name]), 20)}, as DeepSpeed's {key} is {other}"
                raise ConfigError(reason, where=said.where(name), hint=f'make them equal, or {key} "auto"')
        once = TRAINER_MICRO_BATCH in said and TRAINER_ACCUMULATION not in (*said, *unsaid)
        default = {ACCUMULATION: 1} if once and configuration.get(ACCUMULATION) == AUTO else {}
        filled = default | {key: said[name] for key, name in _FILLED.items() if name in said}
        return filled | {key: AUTO for key, name in _FILLED.items() if name in unsaid and key not in filled}


_EMPTY = ("", "none", "null")


def _set_devices(settings: StackSettings, experiment: Experiment) -> Experiment:
    """The processes that are started, where no hardware is said."""
    said = {key: str(settings.get(key, "")).strip() for key in (accelerate.PROCESSES, accelerate.MACHINES)}
    open_ = {key for key, text in said.items() if has_substitution(text) or "{{" in text or text.casefold() in _EMPTY}
    processes, machines = (None if key in open_ else settings.count(key) for key in said)
    if processes and machines and processes % machines == 0:
        experiment = set_nodes(processes // machines, machines, experiment)
    return set_devices(processes, experiment)


def _configuration_of(stated: Mapping[str, Any], path: Path, brought: Brought) -> dict[str, Any]:
    """What Accelerate is told to take: a file, one of TRL's own, the Trainer's option, or replicas."""
    named = stated.get(LAUNCH_FILE)
    if named is None:
        return _trainer_settings(stated, path, brought)
    if str(named) in _PROFILES and find_named(str(named), path, brought) is None:
        return {**_ON_EIGHT, **_PROFILES[str(named)]}
    hint = f"lay it beside the file, or name one of TRL's: {', '.join(_PROFILES)}"
    return dotted(named_document(f"names the {LAUNCH_FILE}", str(named), path, hint, brought).values)


_PREFIX = "fsdp_"


def _trainer_settings(stated: Mapping[str, Any], path: Path, brought: Brought) -> dict[str, Any]:
    """Accelerate's settings, by dotted key, that arguments of the Trainer stand for."""
    with blamed_on(str(path)):
        settings = fsdp_option(stated.get(OPTION))
    if not is_fsdp(settings) or stated.get(_FSDP) is None:
        return settings
    own = mapping_of(stated, _FSDP, path, brought)
    return settings | {f"{FSDP}.{_PREFIX}{key.removeprefix(_PREFIX)}": value for key, value in own.items()}
