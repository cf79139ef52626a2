"""Arguments of Hugging Face's Trainer in a YAML file, and as LLaMA-Factory's options: under DeepSpeed, the Trainer's
``fsdp`` or a configuration of Accelerate, else as replicas; what programs take where they are told nothing; and scripts
that start a program with a YAML (``torchrun train.py sft.yaml``), or LLaMA-Factory with options."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.experiments.accelerate.arguments import add_file, split_overrides
from asap.experiments.accelerate.program import DEEPSPEED, LAUNCH_FILE, Program, read_program
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, below_variable, find_named, missing
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.launch.refusal import check_program, refuse
from asap.experiments.shell import Command, Start, has_substitution, options, words
from asap.stacks.accelerate.stack import KIND, OPTION, PROCESSES
from asap.stacks.deepspeed.stack import IN_FILE
from asap.stacks.registry import is_claimed, spec
from asap.stacks.rules import meant
from asap.stacks.stack_settings import StackSettings, dotted
from asap.stacks.trainer.arguments import KEEP, RECOMPUTE, TRAINER, TRAINER_MICRO_BATCH

OF_FACTORY = "finetuning_type"  # an argument that no other program has
_FACTORY = spec("llama-factory")
_DEFAULTS = {key: value for key, value in _FACTORY.defaults.items() if key not in TRAINER.defaults}


def is_training_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping holds training arguments of a model."""
    return "model_name_or_path" in values and (TRAINER_MICRO_BATCH in values or values.get("do_train") is True)


def in_words_of_trainer(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """LLaMA-Factory's arguments with its defaults, and what it recomputes in the Trainer's word; others as they are.

    Raises:
        ConfigError: they train by another method than prediction of tokens.
    """
    if values.keys().isdisjoint(_FACTORY.files.own):
        return dict(values)
    stated = _DEFAULTS | {key: value for key, value in values.items() if value is not None}
    refuse(_FACTORY, StackSettings(stated, str(path)))
    return stated | meant(_FACTORY.means, stated)


def read_trainer_file(
    values: Mapping[str, Any],
    of_yaml: bool,
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
    alone: bool = False,
) -> Experiment:
    """``experiment`` with what the arguments say.

    Args:
        values: the arguments.
        of_yaml: whether they are the top level of a YAML file.
        path: the file that says them.
        overrides: ``key=value`` of the user.
        experiment: what is known besides, with the processes that are started.
        alone: no command starts them, so that they have to say how they are sharded.

    Raises:
        ConfigError: not all parameters are trained on tokens, or a file that is named is not there.
        UsageError: an override is not ``key=value``.
    """
    own, more, _ = split_overrides(overrides := tuple(overrides))
    written = add_file({**values, **more}, path, {})
    stated = in_words_of_trainer(written, path)
    started = any(stated.get(key) for key in (OPTION, LAUNCH_FILE, KIND, PROCESSES)) or KIND in own
    factory = not written.keys().isdisjoint(_FACTORY.files.own)  # its command starts replicas by itself
    by_deepspeed = bool(written.get(DEEPSPEED)) or (not started and ((alone and not factory) or DEEPSPEED in written))
    if by_deepspeed:
        stated = {**TRAINER.defaults, "bf16": False, "fp16": False, RECOMPUTE: False, **stated}
        launched, defaults = {KIND: "DEEPSPEED", IN_FILE: stated.get(DEEPSPEED) or ""}, {}
    else:
        stated = stated if LAUNCH_FILE in stated else {OPTION: "", **stated}
        launched, defaults = {}, TRAINER.defaults
    program = Program(path, stated, launched, defaults=defaults, of_yaml=of_yaml, launches=True)
    rest = [text for text in overrides if text.partition("=")[0] not in more]
    return read_program(program, rest, experiment.knowing(*_on_recomputation(written, factory)))


def _on_recomputation(written: Mapping[str, Any], factory: bool) -> list[str]:
    """What is assumed of recomputation where a file does not say it, or says it in words of another program."""
    if factory and RECOMPUTE in written:
        return [f"{RECOMPUTE} does not count: LLaMA-Factory has {KEEP}"]
    if {RECOMPUTE, KEEP} & written.keys():
        return []
    default = f"{KEEP}=false" if factory else f"{RECOMPUTE}=false (TRL has true)"
    return [f"not said, and taken as the program has it today: {default}"] if factory or DEEPSPEED in written else []


TRL = re.compile(r"(?:^|\s)trl\s+(?!(?:env|chat|skills|vllm-serve|completion)(?:\s|$))([a-z][\w-]*)(?=\s|$)")
"""A command of TRL's that trains."""
_PROGRAM = re.compile(r"(?:^|/)trl/scripts/sft\.py$|^trl\.scripts\.sft$")
SFT = "sft"
_OF_SFT = spec("trl").defaults


def defaults_of(program: str) -> Mapping[str, Any]:
    """What a program takes where it is told nothing: that of TRL's own, as a file, a module or a command."""
    return _OF_SFT if program == SFT or _PROGRAM.search(program) else {}


_OF_TRAINER, _OF_TRL = ({*spec(folder).files.own} for folder in ("trainer", "trl"))
"""Arguments that programs without the Trainer do not have, and those of ``SFTConfig``, which recomputes unless told
otherwise in some versions and not in others."""
_SAYS_RECOMPUTATION = re.compile(r"checkpointing$|grad\w{0,40}_(?:checkpoint|ckpt)|recompute")


def defaults_under(arguments: Mapping[str, Any], program: str) -> Mapping[str, Any]:
    """No recomputation, where a command has arguments of the Trainer and none that says it.

    Args:
        arguments: by name, also those whose value only a run can tell.
        program: that takes them.
    """
    said = {*arguments}
    of_trainer = TRAINER_MICRO_BATCH in said and not said.isdisjoint(_OF_TRAINER)
    if not of_trainer or not said.isdisjoint(_OF_TRL) or "sft" in program.rpartition("/")[2].casefold():
        return {}
    return {} if any(_SAYS_RECOMPUTATION.search(key) for key in said) else {RECOMPUTE: False}


_BY_FACTORY = re.compile(r"\bllamafactory-cli\s+train\s+(.*)", re.DOTALL)
_WITH_YAML = re.compile(
    r"(?:\btorchrun|\btorch\.distributed\.(?:run|launch)|(?:^|[\s/])deepspeed)\s"
    r"(?:.{0,800}?\s)?(?:(?P<file>\S+\.py)|-m\s+(?P<module>[\w.-]+))\s+(?P<said>['\"]?\S+\.ya?ml\b.*)",
    re.DOTALL,
)
_YAML = (".yaml", ".yml")
_ASSIGNED = re.compile(r"(\w[\w.]*)=(.*)", re.ASCII | re.DOTALL)
_MEGATRON, _ON = "USE_MCA", ("1", "true", "y", "yes", "on")


def starts(command: Command) -> bool:
    """Whether a command starts a program with a YAML, or LLaMA-Factory with options."""
    text = command.text
    return any(form.search(text) for form in (_BY_FACTORY, _WITH_YAML))


def document_of(started: Start) -> tuple[Document, bool] | None:
    """The settings that a command starts a program with, those of the command on top of those of the YAML, and whether
    there is a YAML, or options alone; ``None`` where it starts none so, or the YAML is not there.

    Raises:
        ConfigError: it is malformed, or the program does something else than train a decoder on tokens.
    """
    text, path = started.command.text, started.path
    factory, program = _BY_FACTORY.search(text), _WITH_YAML.search(text)
    if factory is None:
        document = _add_yaml(program["said"], started) if program else None
        if program is None or document is None:
            return None
        if not (is_training_file(document.values) or is_claimed(dotted(document.values))):
            return None
        check_program(program["file"] or program["module"], path)
        return document, True
    if started.environment.get(_MEGATRON, "").casefold() in _ON:
        reason = f"sets {_MEGATRON}: LLaMA-Factory trains by Megatron then, which is not read"
        raise ConfigError(reason, where=str(path), hint="give the model, --hardware, --batch, --sequence and --plan")
    if (found := _add_yaml(factory[1], started)) is not None:
        return found, True
    first = next(iter(words(factory[1])), "")
    if has_substitution(first) or first.endswith(_YAML):
        raise missing("trains", below_variable(first), path, "lay it beside the script, or give it as --config")
    document = Document(path, _settings(factory[1]), {})
    return (document, False) if is_training_file(document.values) else None


def _add_yaml(said: str, started: Start) -> Document | None:
    """The YAML that a command names, with the settings that follow it, if it is there."""
    named = next((below for word in words(said) if (below := below_variable(word)).endswith(_YAML)), "$")
    if has_substitution(named):
        return None
    if (found := find_named(named, started.path, started.files)) is None:
        return None
    document = found.document()
    return Document(document.path, {**document.values, **_settings(said)}, document.lines)


def _settings(said: str) -> dict[str, Any]:
    """Settings of a command as the YAML has them; one that only a run can tell stays as it is written."""
    pairs = {option.name: " ".join(option.words) if option.words else "true" for option in options(said)}
    pairs |= {found[1]: found[2] for word in words(said) if (found := _ASSIGNED.fullmatch(word))}
    return {key: value if has_substitution(value) else parse_yaml(value, f"--{key}")[0] for key, value in pairs.items()}
