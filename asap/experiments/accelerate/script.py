"""Scripts that start a program of Hugging Face's libraries, or one that DeepSpeed shards.

Under Accelerate, under torchrun with the Trainer's own ``--fsdp``, or with a configuration of DeepSpeed: ``accelerate
launch --config_file fsdp.yaml train.py …``, ``deepspeed --num_gpus 8 train.py --deepspeed ds_config.json …``.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UnreadError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.experiments.accelerate.arguments import KINDS, command_options, said, settled
from asap.experiments.accelerate.program import Program, read_program
from asap.experiments.accelerate.trainer_file import (
    OF_FACTORY,
    SFT,
    TRL,
    defaults_of,
    defaults_under,
    in_words_of_trainer,
    is_training_file,
)
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Brought, below_variable, find_named, missing, named_document
from asap.experiments.huggingface_model import NO_MODEL
from asap.experiments.launch.refusal import METHODS, check_arguments, check_program
from asap.experiments.processes import PYTHON, add_processes, in_one_process
from asap.experiments.shell import Command, Start, has_substitution, words
from asap.stacks.accelerate import stack as accelerate
from asap.stacks.accelerate.stack import KIND, OPTION
from asap.stacks.deepspeed.stack import IN_FILE
from asap.stacks.stack_settings import dotted
from asap.stacks.trainer.arguments import TRAINER_MICRO_BATCH

_ACCELERATE = re.compile(r"(?:\baccelerate(?:-launch|\s+launch)|\baccelerate\.commands\.launch)(?=\s|$)")
_TORCHRUN = re.compile(r"\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b")
_PROGRAM = re.compile(r"(?<=\s)(?:(?:-m|--module)\s+([\w.-]+)|['\"]?(\S+\.py)\b)")
_DEEPSPEED = re.compile(r"(?:^|[\s/])deepspeed(?=\s)")
_OPTION_OF_DEEPSPEED = re.compile(r"\s--deepspeed(?:_config)?[\s=]")
_FILE, _STRATEGY = "config_file", "FSDP_SHARDING_STRATEGY"
_ASSIGNED = re.compile(r"\+*[A-Za-z][\w.]*=", re.ASCII)


def starts(command: Command) -> bool:
    """Whether a command starts Accelerate, or the Trainer under torchrun without DeepSpeed."""
    if _ACCELERATE.search(command.text) or TRL.search(command.text):
        return True
    asked = f"--{TRAINER_MICRO_BATCH}" in command.text and "--deepspeed" not in command.text
    return asked and (_TORCHRUN.search(command.text) or PYTHON.search(command.text)) is not None


def read_accelerate_script(start: Start, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what a command starts: Accelerate, the Trainer, or a program that DeepSpeed shards.

    Raises:
        ConfigError: its configuration is not there, it names none, or the program does something else than train a
            decoder on tokens.
        UsageError: an override is not ``key=value``.
    """
    text, path, files = start.command.text, start.path, start.files
    (before, program, after), launcher = _parts(text), _launcher_of(text)
    by_trl = TRL.search(text) is not None
    by_accelerate, by_deepspeed = _ACCELERATE.search(text) is not None, starts_deepspeed(start.command)
    if launcher is not None and launcher.re is PYTHON and not by_deepspeed and not by_trl:
        experiment = in_one_process(text, start.text, start.environment, path, experiment)
    if program is None:
        raise ConfigError("starts Accelerate with a program that it does not name", where=str(path))
    check_program(f"trl_{program}.py" if by_trl else program, path, experiment.model is not None)
    if by_trl and program != SFT:
        raise ConfigError(f"starts trl {program}, which is not read", where=str(path), hint=f"read is {SFT}")
    launched, (arguments, strays) = said(before), _arguments(after, path, files)
    arguments |= start.undecided
    known = settled(launched)
    if by_accelerate:
        configuration = _configured(known, launched, files, path) | command_options(known)
        around = said(text[: launcher.start()]) if launcher else {}
        if accelerate.MACHINES not in known and str(around.get("num_nodes", "1")) != "1":
            configuration.pop(accelerate.PROCESSES, None)
    elif by_deepspeed:
        configuration = {KIND: "DEEPSPEED", IN_FILE: _configuration(arguments, start)}
        experiment = add_processes(start, experiment)
    else:
        if _STRATEGY in start.environment:
            hint = f"say the strategy by --{OPTION} instead of it"
            raise UnreadError(f"sets {_STRATEGY}, which is not read", where=start.where, hint=hint)
        each, machines = (digits(str(known.get(name, one))) for name, one in (("nproc_per_node", ""), ("nnodes", "1")))
        configuration = {}
        if each and machines:
            configuration = {accelerate.PROCESSES: each * machines, accelerate.MACHINES: machines}
    check_arguments({key: value for key, value in _assigned(strays).items() if key in METHODS}, path)
    settings = {key: value for key, value in configuration.items() if not has_substitution(str(value))}
    defaults = defaults_of(program) or defaults_under(arguments, program)
    read = read_program(Program(path, arguments, settings, files, defaults, launches=by_trl), overrides, experiment)
    note = f"not read: {plain(', '.join(strays), 120)}, which {plain(program, 40)} takes in a form of its own"
    return read.knowing(*([note] if strays else []))


def _parts(start: str) -> tuple[str, str | None, str]:
    """Options of the launcher, the program, and its arguments; of a command of TRL its name as the program."""
    if (of_trl := TRL.search(start)) is not None:
        return "", of_trl[1], start[of_trl.end() :]
    launcher = _launcher_of(start)
    rest = start[launcher.end() :] if launcher else f" {start}"
    found = _PROGRAM.search(rest)
    if found is None:
        return rest, None, ""
    return rest[: found.start()], found[1] or found[2], rest[found.end() :]


def _launcher_of(start: str) -> re.Match[str] | None:
    return next(filter(None, (form.search(start) for form in (_ACCELERATE, _TORCHRUN, _DEEPSPEED, PYTHON))), None)


def _arguments(after: str, path: Path, files: Brought) -> tuple[dict[str, Any], list[str]]:
    """Arguments of the program, and its words ``key=value`` of which it is not known what they are.

    Beside a YAML of training arguments that comes first they are laid over it, as LLaMA-Factory does
    (``hparams/parser.py``, ``OmegaConf.from_cli``).
    """
    first, options = next(iter(words(after)), ""), said(after)
    strays = [word for word in words(after) if _ASSIGNED.match(word)]
    named = first.endswith((".yaml", ".yml")) and not has_substitution(first)
    found = find_named(first, path, files) if named else None
    laid_over = {**found.document().values, **options, **_assigned(strays)} if found else {}
    if is_training_file(laid_over):
        return in_words_of_trainer(laid_over, path), []
    return (in_words_of_trainer(options, path) if OF_FACTORY in options else options), strays


def _assigned(words: Iterable[str]) -> dict[str, str]:
    pairs = (word.lstrip("+").partition("=") for word in words)
    return {key: value for key, _, value in pairs}


def _configured(known: Mapping[str, Any], launched: Mapping[str, Any], files: Brought, path: Path) -> dict[str, Any]:
    """Settings of the file that Accelerate is told to take, by dotted key."""
    named = below_variable(str(launched[_FILE])) if _FILE in launched else None
    if named is not None and has_substitution(named):
        raise missing("starts Accelerate with", str(launched[_FILE]), path, "give Accelerate's YAML as --config")
    if named is None:
        if not (KINDS.keys() | {"num_processes"}) & known.keys():
            hint = "give Accelerate's YAML as --config, with the program's arguments as key=value"
            raise ConfigError("starts Accelerate without naming its configuration", where=str(path), hint=hint)
        return {accelerate.KIND: "MULTI_GPU"}
    return dotted(named_document("starts Accelerate with", named, path, "lay it beside the script", files).values)


_CONFIG = ("deepspeed_config", "deepspeed")
_JSON = (".json", ".conf")
_CONFIG_OF_PROGRAM = re.compile(r"(?:deepspeed|ds)(?:_?(?:config|cfg|conf|file|json|path))+")
"""What programs call the argument that names it: ``--ds_config``, ``--deepspeed_cfg``, ``--ds_config_path``."""


def starts_deepspeed(command: Command) -> bool:
    """Whether a command starts a program that DeepSpeed shards."""
    text = f"{command.text} "
    started = _DEEPSPEED.search(text) or _OPTION_OF_DEEPSPEED.search(text)
    return started is not None and (".py" in text or _parts(text)[1] is not None)


def _configuration(arguments: Mapping[str, Any], start: Start) -> str:
    """The configuration that the command names."""
    keys = (*_CONFIG, *(key for key in arguments if _CONFIG_OF_PROGRAM.fullmatch(key)))
    said = [str(arguments[key]) for key in keys if key in arguments]
    name = next((one for one in said if one.endswith(_JSON)), next(filter(has_substitution, said), None))
    if name is None:
        own = ", which its program makes of --zero_stage and other arguments" if "zero_stage" in arguments else ""
        reason = f"starts DeepSpeed without naming its configuration{own}"
        raise ConfigError(reason, where=str(start.path), hint=f"give the DeepSpeed JSON as --config; {NO_MODEL}")
    if find_named(name, start.path, start.files) is None:
        hint = f"lay it beside the script, or give {plain(Path(name).name, 60)} as --config, with --hardware"
        raise missing("starts DeepSpeed with", name, start.path, hint)
    return name
