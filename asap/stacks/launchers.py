"""A plan in the words of the stack that runs it: a line to paste into its launcher or configuration, or the command."""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Literal, cast

import yaml

from asap.core.errors import PlanError
from asap.models.workload import FoldedAxis
from asap.plans.degrees import FOLDED
from asap.plans.plan import Plan, Remat
from asap.stacks.accelerate.stack import OPTION
from asap.stacks.deepspeed.stack import is_said_by_accelerate
from asap.stacks.maxtext.mesh import write_layout
from asap.stacks.megatron.degrees import to_arguments
from asap.stacks.megatron.releases import JOINT
from asap.stacks.registry import OF_YAML, STACK, Contract, by_framework, contracts, hook, spec_of
from asap.stacks.torchtitan.stack import PYTHON
from asap.stacks.torchtitan.stages import SEQUENCE, SHARD
from asap.stacks.trainer.arguments import SECTION
from asap.stacks.writing import (
    PRIMUS_MODULE,
    is_of_primus,
    lines_of_primus,
    lines_to_paste,
    paste_line,
    to_settings,
    yaml_lines,
)

Stack = Literal[
    "maxtext", "megatron", "nemo", "bridge", "torchtitan", "deepspeed", "nanotron", "axolotl", "accelerate", "primus",
    "fsdp", "settings",
]  # fmt: skip

FALLBACK: Stack = "maxtext"
"""Whose words a framework without a table takes."""
_STACKS: dict[str, Stack] = {
    "megatron-lm": "megatron",
    "accelerate ddp": "accelerate",
    "pytorch": "settings",
}


_APART: tuple[Stack, ...] = ("accelerate", "deepspeed", "nemo", "bridge")
"""Keys of the contract whose settings beside a plan are the program's, or have their sections said."""
_NUMBERS = ("sequence_parallel", "loss_chunks", "first_moment", "second_moment", "optimizer", "weight_precision")
"""Settings beside the mesh that some stacks have no words for."""


def stack_of(framework: str | None, kind: str | None = None) -> Stack:
    """The stack whose words a record's framework takes: MaxText's for any other, on GPUs none's if it is not said."""
    table, other = by_framework(framework), "settings" if framework is None and kind == "gpu" else FALLBACK
    return cast(Stack, table.contract if table else _STACKS.get((framework or "").casefold(), other))


def contract_of(framework: str | None) -> Contract:
    """What holds of the stack of a record's framework."""
    return contracts()[stack_of(framework)]


def is_of_jax(framework: str | None) -> bool:
    """Whether XLA compiles what a record's framework runs."""
    table = by_framework(framework)
    return (table or contract_of(framework)).kin == "jax"


def refusal_of_layout(
    plan: Plan, framework: str | None, settings: Mapping[str, object], topology: tuple[int, ...] | None
) -> str | None:
    """Why a configuration does not start on a torus: its mesh shares axes of it, and the layout that it says cannot."""
    if stack_of(framework) != "maxtext" or not settings:
        return None
    lacking = " ".join(f"{key}={value}" for key, value in write_layout(plan, settings, topology).items())
    return f"it does not start without {lacking}: axes of its mesh share an axis of the torus" if lacking else None


def words_of(stack: Stack, current: Mapping[str, object] | None) -> Stack:
    """Whose form a line to paste has: that of the launcher which starts the stack, where there is one."""
    if stack == "deepspeed" and is_said_by_accelerate(current):
        return "accelerate"
    return "primus" if is_of_primus(current) else stack


def launch_lines(
    plan: Plan,
    stack: Stack,
    current: Mapping[str, object] | None,
    *,
    global_batch: int | None = None,
    layers: int | None = None,
    topology: tuple[int, ...] | None = None,
    sequence: int | None = None,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """What to change for a stack to run a plan.

    Args:
        plan: what to run.
        stack: whose words to use.
        current: its settings as they are; ``None`` where there is no configuration to change.
        global_batch: sequences in a step.
        layers: decoder layers.
        topology: of a slice of TPUs.
        sequence: tokens in a sequence, said where there is no configuration to change.
        beside: settings beside the plan, under the stack's names.

    Raises:
        PlanError: the stack cannot express the plan.
    """
    known = contracts()[stack]
    if field := next((each for each in _NUMBERS if getattr(plan, each) is not None and each not in known.levers), None):
        name = "the stack" if stack == "settings" else known.title.split()[0]
        raise PlanError(f"{name} has no setting for {field}")
    global_batch = plan.global_batch or global_batch
    said, current = current, current or {}
    if (table := spec_of(stack, current)) is None:
        raise PlanError("the settings of the run are not on record, so that no line can be written")
    changed = to_settings(
        table, plan, current, global_batch=global_batch, sequence=sequence, layers=layers, topology=topology
    )
    if stack == "torchtitan" and said is None:
        shards = {SHARD: str(plan.degree("data") * plan.degree("expert"))}
        changed = shards | changed | ({SEQUENCE: str(sequence)} if sequence else {})
    if stack not in _APART:
        return lines_to_paste(table, changed | {**beside}, current)
    line = lines_to_paste(table, changed, current)
    return "\n".join((setting_lines(stack, beside, current), line)) if beside else line


def setting_lines(stack: Stack, settings: Mapping[str, str], current: Mapping[str, object]) -> str:
    """Settings beside the plan, in the form in which a run's settings were given.

    Args:
        stack: whose words they are.
        settings: to change, under the stack's names.
        current: its settings as they are.
    """
    if stack in ("accelerate", "deepspeed"):
        return "\n".join(_program_line(key, value, stack) for key, value in settings.items())
    if stack not in _APART and (table := spec_of(stack, current)) is not None:
        return lines_to_paste(table, settings, current)
    if is_of_primus(current):
        return lines_of_primus(settings, current)
    return paste_line(settings)


def _program_line(key: str, value: str, stack: Stack) -> str:
    """An argument of the program, or a key of its YAML or of DeepSpeed's JSON."""
    if key.startswith(SECTION):
        return f"--{key.removeprefix(f'{SECTION}.')} {value}"
    section, _, name = key.partition(".")
    return f'{{"{section}": {{"{name}": {value}}}}}' if stack == "deepspeed" and name else yaml_lines({key: value})


def inexpressible(
    plan: Plan, stack: Stack, current: Mapping[str, object], global_batch: int | None = None, layers: int | None = None
) -> str | None:
    """Why a stack has no words for a plan on top of its settings; ``None`` if it has."""
    table = spec_of(stack, current)
    try:
        if table is not None and (expressed := hook(table, "expressed")):
            expressed(table, plan, current, plan.global_batch or global_batch, layers)
        else:
            launch_lines(plan, stack, current, global_batch=global_batch, layers=layers)
    except PlanError as error:
        return error.message
    return None


def drop_unknown_policy(plan: Plan, stack: Stack) -> Plan:
    """The plan, its recomputation left open where a stack has no policy that does it."""
    known = stack != "maxtext" or plan.remat not in (Remat.NONE, Remat.SELECTIVE)
    return plan if known else plan.model_copy(update={"remat": None})


def settings_of(
    plan: Plan,
    stack: Stack,
    *,
    global_batch: int | None = None,
    layers: int | None = None,
    topology: tuple[int, ...] | None = None,
    experts_over: tuple[FoldedAxis, ...] = (),
) -> Mapping[str, object]:
    """A plan as the settings of a stack, where there is no configuration that says them; none where it has no words."""
    folded = {FOLDED: experts_over}
    try:
        if stack in ("maxtext", "torchtitan") and (table := spec_of(stack, {})) is not None:
            said = folded if experts_over else {}
            return to_settings(table, plan, said, global_batch=global_batch, layers=layers, topology=topology)
        return to_arguments(plan, folded) if stack in ("megatron", "nemo", "bridge") else {}
    except PlanError:
        return {}


_DECIDING = (f"{SECTION}.{OPTION}", JOINT, PYTHON, STACK, OF_YAML, PRIMUS_MODULE)


def form_of(settings: Mapping[str, object]) -> dict[str, object]:
    """What of a run's settings decides the form of its lines, without the values that a plan says itself."""
    return {key: settings[key] for key in _DECIDING if key in settings}


COMMAND = "command"
"""In the provenance of a record: the command of the script that was read."""
_SOURCE = re.compile(r"^([^:,;]+?\.(?:ya?ml|toml))(?::|$)")
_WITHOUT, _COMMENT = re.compile(r"# without (.*)"), re.compile(r"^# [^\n]*\n", re.MULTILINE)
_VALUE = r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>|&;]+)"
_END = re.compile(r"\s(?:\d?>|[|&;])")
"""Where the words of a command end."""


def start_command(stack: Stack, line: str, said: str | None, sources: Iterable[str], gpus: int, nodes: int) -> str:
    """The command with a plan's settings as options.

    Args:
        stack: whose program is started.
        line: what is changed, as :func:`asap.stacks.launchers.launch_lines` gives it.
        said: the command on record, where the run was given as its script.
        sources: where values of the record come from, which name its file.
        gpus: devices of a node.
        nodes: how many.

    Raises:
        PlanError: the program takes no options, or the run was given neither as its file nor as its script.
    """
    if said and (changed := _add_options(said, line)) is not None:
        return changed
    known = contracts()[stack]
    files = [found[1] for source in sources if (found := _SOURCE.match(source)) and found[1].endswith(known.files)]
    if not known.command or not files or said:
        raise PlanError(
            f"no whole command is known for {known.title} of this run",
            hint="add the line to the command that starts it",
        )
    if stack == "torchtitan":
        import tomlkit

        sections = tomlkit.parse(line).unwrap().items()
        pairs = ((f"{section}.{key}", str(value)) for section, said in sections for key, value in said.items())
        options = " ".join(f"--{key} {shlex.quote(value)}" for key, value in pairs)
    else:
        options = paste_line(yaml.safe_load(line)) if ": " in line else line
    return known.command.format(
        file=shlex.quote(PurePath(files[0]).name), options=" ".join(options.split()), gpus=gpus, nodes=nodes
    )


def _add_options(command: str, line: str) -> str | None:
    """A command with the options of a line in the place of its own, others behind them; ``None`` where the line is no
    options."""
    removed = _WITHOUT.search(line)
    text = _COMMENT.sub("", line[: removed.start()] if removed else line).partition("  # ")[0]
    found = re.findall(rf"--[\w.-]+(?:\s+(?!-){_VALUE}(?!\S))*|\+*[\w.]+={_VALUE}", text)
    if " ".join(found).split() != text.split():
        return None
    for option in found:
        name = re.match(r"--[\w.-]+|\+*[\w.]+(?==)", option)
        command = _replaced(command, name[0] if name else option, option)
    for name in removed[1].partition("#")[0].split() if removed else ():
        command = _replaced(command, name, "")
    return command


def _replaced(command: str, name: str, option: str) -> str:
    """A command with an option in the place of the one of that name, in either way to write it."""
    bare = "[-_]".join(map(re.escape, re.split("[-_]", name.lstrip("-+"))))
    takes = rf"(?:=\S+|(?:\s+(?![-$]){_VALUE})*)" if " " in option else r"(?:=\S+|\s+(?i:true|false)(?!\S))?"
    pattern = rf"(?<!\S)--{bare}(?![\w.-]){takes}" if name.startswith("--") else rf"(?<!\S)\+*{bare}={_VALUE}"
    if re.search(pattern, command):
        return re.sub(rf"\s*{pattern}" if not option else pattern, lambda _: option, command, count=1)
    end = _END.search(command)
    place = end.start() if end else len(command)
    return f"{command[:place].rstrip()} {option}{command[place:]}" if option else command
