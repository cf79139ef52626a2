"""Megatron-LM's arguments in a launch script, or in a file that holds them as the words of a command.

Everything is kept under the name that ``megatron/training/arguments.py`` gives it: ``tensor_model_parallel_size``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import below_variable
from asap.experiments.processes import ranks_of_mpi
from asap.experiments.record_file import FIELDS
from asap.experiments.remarks import recomputes
from asap.experiments.shell import Command, Option, Start, has_substitution, inline_files, options, read_commands
from asap.experiments.tables.deepspeed import add_configuration
from asap.experiments.tables.reader import plain_name, read_table
from asap.stacks.megatron.reading import PRECISION
from asap.stacks.megatron.releases import JOINT, left_to_checkpoint
from asap.stacks.registry import irrelevant, spec
from asap.stacks.stack_settings import StackSettings

_TABLE = spec("megatron")
_NODES = {
    "nodes": "nnodes", "num_nodes": "nnodes", "gpus_per_node": "nproc_per_node", "ntasks_per_node": "nproc_per_node",
    "num_gpus": "nproc_per_node",
}  # fmt: skip
"""Options of Slurm and of DeepSpeed's launcher in torchrun's words."""
_OF_LAUNCHER = {*_NODES.values(), "world_size"}
_TRAINING = re.compile(r"(?:train|tune|sft)[\w-]{0,200}\.py")
_NO_TRAINING = re.compile(
    r"(?<![\w-])[\w-]{0,200}(?:generat|inference|server|convert|export|quantiz|prune|eval|preprocess|merge|analy[sz]e|dataset|mmlu"
    r"|extract)[\w-]{0,200}\.py|(?:tasks|retro)/[\w/-]*main\.py|(?<=-m )[\w.]*(?:inference|generat|server)[\w.]*"
)
_LAYOUT = re.compile(r"(--pipeline[-_]model[-_]parallel[-_]layout[=\s]+)([^\s'\"]+)")
"""A layout that a variable holds: its bars and brackets are no operators of the shell."""
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_OF_EXPERTS = re.compile(r"(?:^|_)(?:num|n|number_of)_(?:\w+_)?experts$|(?:^|_)experts_(?:num|count|number)$")
_ONE = ("0", "1", "none", "null", "")
_BLOCKS, _MODE, _OTHER_MODES = ("MODEL_ARGS", "args", "arguments"), "MODE", ("inference", "rl")
_GRANULARITY, _TOKENIZER, _EXPERTS = "recompute_granularity", "tokenizer_model", "num_experts"
_ENVIRONMENT = re.compile(
    r"(?:^/etc/\S*|(?:^|/)(?:conda\.sh|activate|modules\.sh|set_?(?:env|vars)\.sh))[\"']?(?:\s|$)"
)
"""Files of an environment of software, which have no arguments of Megatron-LM."""
_INSTEAD = "give the script that starts it, or the model's config.json with --hardware, --batch, --sequence and --plan"
_UNUSED = "--deepspeed_config is not used without --deepspeed"
_FILLED = re.compile(r"\$\{?([A-Za-z_]\w*)(?:\[[@*]\])?\}?", re.ASCII)


def find_arguments(text: str, path: Path) -> Start | None:
    """The start of Megatron-LM in a script that has its arguments; of one that others source, its last command."""
    whole = inline_files(text, path.parent)
    if max(_signs(whole, "-"), _signs(whole, "_")) < 2:
        return None
    _check_program(whole, path)
    commands = tuple(read_commands(whole))
    runs = [
        command
        for command in commands
        if not command.assigns and signs_among(one.name for one in options(command.text)) > 1
    ]
    run = next((command for command in runs if command.certain), runs[0] if runs else commands[-1])
    return Start(run, run, path, whole, commands, len(runs))


def signs_among(names: Iterable[str]) -> int:
    """How many of the names are arguments two of which make a file one of Megatron-LM."""
    return len({*_TABLE.names["signs"]} & {*names})


def _signs(text: str, joint: str) -> int:
    said = _COMMENT.sub("", text)
    return sum(f"--{sign.replace('_', joint)}" in said for sign in _TABLE.names["signs"])


def read_megatron_script(start: Start, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with the arguments of the command that starts a run.

    A script without such a command, as one that others source, gives all arguments that it has.

    Raises:
        ConfigError: it trains something else than a decoder, an argument that is read has no value, or what
            :func:`read_table` raises.
        UsageError: an override is not ``key=value``.
    """
    text, path, commands = start.text, start.path, start.before
    run = start.command if start.runs else None
    read = [c for c in commands if c is run or (c.certain and (run is None or c.text.startswith("sbatch ")))]
    lines = {_name(o): o.line for c in commands if c.certain for o in options(c.written, c.line)}
    maybe = {_name(o): o.line for c in commands if not c.certain for o in options(c.written, c.line)}
    maybe = {name: line for name, line in maybe.items() if name in _TABLE.words}
    values, unknown = _last_values(option for command in read for option in _options_of(command))
    unknown = {name: lines.get(name, line) for name, line in unknown.items()}
    if run is None and not signs_among((*values, *unknown, *maybe)):
        reason = "has arguments of Megatron-LM, and no command that is read which takes them"
        raise ConfigError(reason, where=str(path), hint=_INSTEAD)
    sources = [c.text.split(maxsplit=1)[1] for c in commands if c.text.startswith(("source ", ". "))]
    sources = [source for source in sources if not _ENVIRONMENT.search(source)]
    # words of the command besides the values of its options that only a run can tell: $EXTRA_ARGS
    beside = (one.words[0 if one.name in _TABLE.switches else 1 :] for one in options(run.text)) if run else ()
    open_ = [word for words in beside for word in words if has_substitution(word)]
    notes = [f"sources {plain(name, 60)}, which is not followed" for name in sources]
    notes += [] if run else ["starts no run itself: the arguments that it sets are read, with Megatron-LM's defaults"]
    filled = {key for key, value in run.scope.variables.items() if value is None} if run else set()
    added = [word for word in open_ if (said := _FILLED.fullmatch(word)) and said[1] in filled]
    listed = plain(", ".join(dict.fromkeys(added)), 120)  # what nothing sets is empty
    notes += [f"adds {listed} to its command, which only a run can tell: not read"] if added else []
    known = _TABLE.words | irrelevant("megatron") | {*_TABLE.switches}
    foreign = {name: said for name, said in values.items() if name not in known}
    counts_experts = any(_OF_EXPERTS.search(name) and str(said) not in _ONE for name, said in foreign.items())
    for said, what in ((maybe, "under conditions that it does not decide"), (unknown, "to what it does not say")):
        notes += [f"sets {_by_line(said)} {what}: left out"] if said else []
    if run and not {"world_size", "nproc_per_node"} & values.keys() and (ranks := ranks_of_mpi(run.text)):
        values["world_size"] = str(ranks)
    if _signs(text, "_") > _signs(text, "-"):
        values[JOINT] = "_"
    settings = StackSettings(values, str(path), {name: f"{path}:{line}" for name, line in lines.items()})
    left = {*maybe, *unknown, *({_EXPERTS} if counts_experts and _EXPERTS not in values else ())}
    if values.get(_GRANULARITY) != "full" and any(map(recomputes, foreign)):
        left.add(_GRANULARITY)
    deepspeed = settings.flag("deepspeed")
    more: tuple[str, ...] = ()
    if deepspeed:
        settings, by_run, more = add_configuration(settings, start.files, path)
        left |= by_run
    elif "deepspeed_config" in settings:
        settings, more = settings.overridden({"deepspeed_config": None}), (_UNUSED,)
    left |= left_to_checkpoint(settings)
    if sources and (run is None or open_):
        kinds = (PRECISION, frozenset(_TABLE.names["recomputation"]))
        left = left.union(*(keys for keys in kinds if not keys & settings.keys()))
    experiment = experiment.knowing(*(f"{path.name} {note}" for note in notes), *more)
    return read_table(_TABLE, settings, path, overrides, experiment, frozenset(left))


def _check_program(text: str, path: Path) -> None:
    """Raise ConfigError where a script runs a program that trains no decoder."""
    shown = _COMMENT.sub("", text)
    program = next((each for each in _TABLE.names["other_programs"] if f"{each}.py" in shown), None)
    if program:
        raise ConfigError(f"runs {program}.py; only decoders (pretrain_gpt.py) are read", where=str(path))
    other = None if _TRAINING.search(text) else _NO_TRAINING.search(text)
    if other:
        reason = f"runs {plain(other[0], 60)}, which does not train"
        raise ConfigError(reason, where=str(path), hint="give the script that trains")


def _options_of(command: Command) -> Iterator[Option]:
    """The options of its program, and those of its launcher that count devices."""
    launcher, program, rest = command.text.partition(".py ")
    if command.text.startswith("sbatch ") or (program and not command.assigns):
        yield from (one for one in options(launcher, command.line) if _name(one) in _OF_LAUNCHER)
    if not command.text.startswith("sbatch "):
        yield from options(_LAYOUT.sub(r"\1'\2'", rest if program else command.text), command.line)


def _by_line(arguments: Mapping[str, int]) -> str:
    """``--num-layers, --hidden-size (line 4), --bf16 (line 9)``."""
    lines: dict[int, list[str]] = {}
    for name, line in arguments.items():
        lines.setdefault(line, []).append(f"--{name.replace('_', '-')}")
    return ", ".join(f"{', '.join(names)} (line {line})" for line, names in lines.items())


def is_argument(key: str) -> bool:
    """Whether an override is one of Megatron-LM's arguments."""
    return key.startswith("--") or plain_name(_TABLE, key) in _TABLE.words | (irrelevant("megatron") - FIELDS)


def mapping_arguments(values: Mapping[str, Any], path: Path, lines: Mapping[str, int]) -> StackSettings | None:
    """Arguments in a JSON or YAML file: by name, or as the words of a command line; ``None`` if there are none.

    Megatron-LM's own tests keep them as ``MODEL_ARGS: {--num-layers: 12, …}``, with the ``MODE`` that they run in.

    Raises:
        ConfigError: they serve a model, or train it by reinforcement learning.
    """
    block = next((values[name] for name in _BLOCKS if isinstance(values.get(name), dict | list)), values)
    if isinstance(block, list):
        line = " ".join(f"'{str(word).replace(chr(39), '')}'" for word in block)
        found, _ = _last_values(options(line))
    else:
        found = {plain_name(_TABLE, key): value for key, value in block.items()}
    if signs_among(found) < 2:
        return None
    if (mode := values.get(_MODE)) in _OTHER_MODES:
        where = f"{path}:{lines[_MODE]}" if _MODE in lines else str(path)
        raise ConfigError(f"{_MODE}: {mode} is no pre-training, which alone is read", where=where)
    places = {plain_name(_TABLE, key): f"{path}:{line}" for key, line in lines.items()} if block is values else {}
    return StackSettings(found, str(path), places)


def _last_values(said: Iterable[Option]) -> tuple[dict[str, Any], dict[str, int]]:
    """The value of each argument as argparse takes it, the last one; the lines of those not known."""
    table, read = _TABLE, _TABLE.words
    values: dict[str, Any] = {}
    unknown: dict[str, int] = {}
    for option in said:
        name = _name(option)
        if name in table.switches:
            values[name] = True
        elif name == _TOKENIZER and option.words and not has_substitution(below := below_variable(option.words[0])):
            values[name] = below
        elif name in read and any(has_substitution(word) for word in option.words[:1]):
            unknown[name] = option.line
            values.pop(name, None)
        elif option.words or name not in _OF_LAUNCHER:
            several = name in table.names["several"] or (name == _EXPERTS and len(option.words) > 1)
            values[name] = list(option.words) if several else option.words[0] if option.words else True
        if name in _NODES.values() and option.words:
            values[name] = option.words[0].rpartition(":")[2]
    return values, unknown


def _name(option: Option) -> str:
    return _NODES.get(option.name, option.name)
