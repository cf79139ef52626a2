"""Megatron-LM's arguments, from a launch script or from a file that holds them.

Everything is kept under the name that ``megatron/training/arguments.py`` gives it: ``tensor_model_parallel_size``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.named_file import below_variable
from asap.experiments.megatron.forks import (
    arguments_within,
    counts_experts,
    decides_recomputation,
    foreign_arguments,
    note_on_foreign,
)
from asap.experiments.megatron.names import FLAGS, READ
from asap.experiments.processes import ranks_of_mpi
from asap.experiments.shell import Command, Option, has_substitution, options, read_commands
from asap.stacks.megatron.releases import JOINT
from asap.stacks.stack_settings import StackSettings, overriding

SIGNS = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "num_attention_heads", "micro_batch_size")
"""Two of these make a script or a file one of Megatron-LM."""

_NODES = {
    "nodes": "nnodes", "num_nodes": "nnodes", "gpus_per_node": "nproc_per_node", "ntasks_per_node": "nproc_per_node",
    "num_gpus": "nproc_per_node",
}  # fmt: skip
"""Options of Slurm and of DeepSpeed's launcher in torchrun's words."""
_MANY = ("recompute_modules", "cuda_graph_modules", "cuda_graph_scope")
_ONE_OR_MANY = ("num_experts",)
_OTHER_PROGRAMS = (
    "pretrain_bert", "pretrain_t5", "pretrain_mamba", "pretrain_hybrid", "pretrain_vlm", "pretrain_ict",
    "pretrain_retro", "pretrain_mimo", "pretrain_vision_classify", "pretrain_vision_dino", "pretrain_vision_inpaint",
    "multimodal/train", "mimo/train",
)  # fmt: skip
_TRAINING = re.compile(r"(?:train|tune|sft)[\w-]{0,200}\.py")
_NO_TRAINING = re.compile(
    r"(?<![\w-])[\w-]{0,200}(?:generat|inference|server|convert|export|quantiz|prune|eval|preprocess|merge|analy[sz]e|dataset|mmlu"
    r"|extract)[\w-]{0,200}\.py|(?:tasks|retro)/[\w/-]*main\.py|(?<=-m )[\w.]*(?:inference|generat|server)[\w.]*"
)
_GENERATING = "of generating text, which does not train"
_DISTILLING = "of learning from another model, whose step is not modelled"
_NOT_MODELLED = {
    **dict.fromkeys(("prompts", "prompt_file", "num_tokens_to_generate"), _GENERATING),
    **dict.fromkeys(("kd", "mos", "load_teacher", "export_kd_teacher_load"), _DISTILLING),
    **dict.fromkeys(
        ("lora_r", "lora_target_modules"), "of adapters: training a part of the parameters is not modelled"
    ),
}
_STAGE, _COMPARING = "stage", ("dpo", "simpo", "orpo", "kto", "rm", "orm", "prm", "ppo", "grpo")
"""What MindSpeed-LLM calls training that compares answers, or scores them."""
_LAYOUT = re.compile(r"(--pipeline[-_]model[-_]parallel[-_]layout[=\s]+)([^\s'\"]+)")
"""A layout that a variable holds: its bars and brackets are no operators of the shell."""
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_BLOCKS = ("MODEL_ARGS", "args", "arguments")
_GRANULARITY = "recompute_granularity"
_TOKENIZER = "tokenizer_model"
_MODE, _OTHER_MODES = "MODE", ("inference", "rl")


def is_megatron_script(text: str) -> bool:
    """Whether a script launches Megatron-LM, by its arguments."""
    return max(_signs(text, "-"), _signs(text, "_")) >= 2


def _signs(text: str, joint: str) -> int:
    said = _COMMENT.sub("", text)
    return sum(f"--{sign.replace('_', joint)}" in said for sign in SIGNS)


_ENVIRONMENT = re.compile(
    r"(?:^/etc/\S*|(?:^|/)(?:conda\.sh|activate|modules\.sh|set_?(?:env|vars)\.sh))[\"']?(?:\s|$)"
)
"""Files of an environment of software, which have no arguments of Megatron-LM."""


_INSTEAD = "give the script that starts it, or the model's config.json with --hardware, --batch, --sequence and --plan"
_FILLED = re.compile(r"\$\{?([A-Za-z_]\w*)(?:\[[@*]\])?\}?", re.ASCII)
_HOLDS_WORDS = re.compile(rf"(?:{_FILLED.pattern}|\$[@*])+|\$\(.*", re.ASCII | re.DOTALL)
"""What a shell may fill with several words; of ``$ROOT/data`` it makes one."""


@dataclass(frozen=True)
class ScriptArguments:
    """What a script says of the run that it starts."""

    settings: StackSettings
    exports: dict[str, str]
    unsettled: frozenset[str]
    """Arguments that are read and whose value only a run can tell."""
    sourced: bool
    """Whether it sources what could not be followed, and takes arguments from there."""
    notes: tuple[str, ...]


def script_arguments(text: str, path: Path) -> ScriptArguments:
    """Arguments of the command that starts a run.

    A script without such a command, as one that others source, gives all arguments that it has.

    Raises:
        ConfigError: it trains something else than a decoder, or an argument that is read has no value.
    """
    shown = _COMMENT.sub("", text)
    program = next((program for program in _OTHER_PROGRAMS if f"{program}.py" in shown), None)
    if program:
        raise ConfigError(f"runs {program}.py; only decoders (pretrain_gpt.py) are read", where=str(path))
    other = None if _TRAINING.search(text) else _NO_TRAINING.search(text)
    if other:
        reason = f"runs {plain(other[0], 60)}, which does not train"
        raise ConfigError(reason, where=str(path), hint="give the script that trains")
    commands = list(read_commands(text))
    lines = {_of_launcher(o.name): o.line for c in commands if c.certain for o in options(c.written, c.line)}
    undecided = {_of_launcher(o.name): o.line for c in commands if not c.certain for o in options(c.written, c.line)}
    undecided = {name: line for name, line in undecided.items() if name in READ}
    sources = [c.text.split(maxsplit=1)[1] for c in commands if c.text.startswith(("source ", ". "))]
    sources = [source for source in sources if not _ENVIRONMENT.search(source)]
    runs = [command for command in commands if not command.assigns and _is_run(command)]
    run = next((command for command in runs if command.certain), runs[0] if runs else None)
    read = [c for c in commands if c is run or (c.certain and (run is None or c.text.startswith("sbatch ")))]
    values, unknown = _last_values(
        option for command in read for option in options(_LAYOUT.sub(r"\1'\2'", command.text), command.line)
    )
    if run is None and not {*SIGNS} & {*values, *unknown, *undecided}:
        reason = "has arguments of Megatron-LM, and no command that is read which takes them"
        raise ConfigError(reason, where=str(path), hint=_INSTEAD)
    open_ = _open_words(run) if run else []
    notes = [f"sources {plain(name, 60)}, which is not followed" for name in sources]
    notes += [] if run else ["starts no run itself: the arguments that it sets are read, with Megatron-LM's defaults"]
    notes += [f"starts {len(runs)} runs; the one of line {run.line} is read"] if run and len(runs) > 1 else []
    notes = [f"{path.name} {note}" for note in notes] + _note_on_open(open_, run, path.name)
    parts = "\n".join(c.text for c in read if c.assigns and _is_part_of_run(c))
    within = arguments_within(run.text) if run else parts
    foreign = foreign_arguments(within)
    experts = (
        frozenset(("num_experts",)) if "num_experts" not in values and counts_experts(within) else frozenset[str]()
    )
    for said, what in ((undecided, "under conditions that it does not decide"), (unknown, "to what it does not say")):
        notes += [f"{path.name} sets {_by_line(said)} {what}: left out"] if said else []
    if run and not {"world_size", "nproc_per_node"} & values.keys() and (ranks := ranks_of_mpi(run.text)):
        values["world_size"] = str(ranks)
    _check_trains(values, str(path))
    if _signs(text, "_") > _signs(text, "-"):
        values[JOINT] = "_"
    return ScriptArguments(
        settings=StackSettings(values, str(path), lines),
        exports=commands[-1].scope.environment() if commands else {},
        unsettled=frozenset(undecided) | frozenset(unknown) | experts | _left_to_fork(values, foreign),
        sourced=bool(sources) and (run is None or bool(open_)),
        notes=(*notes, *([note] if (note := note_on_foreign(foreign, path.name)) else [])),
    )


def _left_to_fork(values: Mapping[str, Any], foreign: Sequence[str]) -> frozenset[str]:
    """Recomputation, where a fork's own arguments say it and Megatron-LM's do not say that all is."""
    known = values.get(_GRANULARITY) == "full" or not decides_recomputation(foreign)
    return frozenset[str]() if known else frozenset((_GRANULARITY,))


def _is_run(command: Command) -> bool:
    said = {option.name for option in options(command.text)}
    return sum(sign in said for sign in SIGNS) >= 2


def _is_part_of_run(command: Command) -> bool:
    """Whether an assignment collects arguments of Megatron-LM, and not those of a launcher alone."""
    return any(option.name in READ - {*_NODES.values(), "world_size"} for option in options(command.text))


def _open_words(command: Command) -> list[str]:
    """Words of a command besides the values of its options that only a run can tell: ``$EXTRA_ARGS``."""
    words = command.text.split()
    bare = [word.strip("\"'") for word in words]
    places = [place for place, word in enumerate(bare) if place and _HOLDS_WORDS.fullmatch(word)]
    return [bare[place] for place in places if not _takes_value(words[place - 1])]


def _note_on_open(words: list[str], command: Command | None, name: str) -> list[str]:
    """A note on words that the script fills with what only a run can tell; what nothing sets is empty."""
    filled = {key for key, value in command.scope.variables.items() if value is None} if command else set()
    found = [word for word in words if (said := _FILLED.fullmatch(word)) and said[1] in filled]
    listed = plain(", ".join(dict.fromkeys(found)), 120)
    return [f"{name} adds {listed} to its command, which only a run can tell: not read"] if found else []


def _takes_value(word: str) -> bool:
    """Whether the next word is its value: after an option, or as the target of a redirection."""
    return ">" in word or (word.startswith("-") and "=" not in word and _name(word) not in FLAGS)


def _by_line(arguments: Mapping[str, int]) -> str:
    """``--num-layers, --hidden-size (line 4), --bf16 (line 9)``."""
    lines: dict[int, list[str]] = {}
    for name, line in arguments.items():
        lines.setdefault(line, []).append(f"--{name.replace('_', '-')}")
    return ", ".join(f"{', '.join(names)} (line {line})" for line, names in lines.items())


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
        own_lines: Mapping[str, int] = {}
    else:
        found = {_name(key): value for key, value in block.items()}
        own_lines = {_name(key): line for key, line in lines.items()} if block is values else {}
    if sum(sign in found for sign in SIGNS) < 2:
        return None
    _check_trains(found, str(path))
    if (mode := values.get(_MODE)) in _OTHER_MODES:
        where = f"{path}:{lines[_MODE]}" if _MODE in lines else str(path)
        raise ConfigError(f"{_MODE}: {mode} is no pre-training, which alone is read", where=where)
    return StackSettings(found, str(path), own_lines)


def _check_trains(said: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError where arguments are those of generating text (``megatron/inference``) or of distillation."""
    if sign := next((key for key in _NOT_MODELLED if key in said), None):
        reason = f"--{sign.replace('_', '-')} is an argument {_NOT_MODELLED[sign]}"
        raise ConfigError(reason, where=where, hint="give a run that trains all parameters on tokens")
    if said.get(_STAGE) in _COMPARING:
        raise ConfigError(f"--{_STAGE} {said[_STAGE]} compares answers or scores them: not modelled", where=where)


def with_overrides(settings: StackSettings, overrides: Iterable[str]) -> StackSettings:
    """The arguments with ``tensor_model_parallel_size=4`` or ``--tensor-model-parallel-size=4`` on top.

    Raises:
        UsageError: an override is not ``key=value``.
    """
    return settings.overridden(overriding(overrides, _name))


def is_argument(key: str) -> bool:
    """Whether an override is one of Megatron-LM's arguments."""
    return key.startswith("--") or _name(key) in READ


def _last_values(said: Iterable[Option]) -> tuple[dict[str, Any], dict[str, int]]:
    """The value of each argument as argparse takes it, the last one; the lines of those not known."""
    values: dict[str, Any] = {}
    unknown: dict[str, int] = {}
    for option in said:
        name = _of_launcher(option.name)
        if name in FLAGS:
            values[name] = True
        elif name == _TOKENIZER and option.words and not has_substitution(below := below_variable(option.words[0])):
            values[name] = below
        elif name in READ and any("$" in word or "`" in word for word in option.words[:1]):
            unknown[name] = option.line
            values.pop(name, None)
        elif option.words or name not in _NODES.values():
            several = name in _MANY or (name in _ONE_OR_MANY and len(option.words) > 1)
            values[name] = list(option.words) if several else option.words[0] if option.words else True
        if name in _NODES.values() and option.words:
            values[name] = option.words[0].rpartition(":")[2]
    return values, unknown


def _of_launcher(name: str) -> str:
    return _NODES.get(name, name)


def _name(key: str) -> str:
    return key.removeprefix("--").replace("-", "_")
