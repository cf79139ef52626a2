"""How many processes a command starts (torchrun, Accelerate, DeepSpeed's launcher), and the variables of its run."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.core.secrets import redacted
from asap.core.units import counted
from asap.experiments.experiment import Experiment, refer_to_hardware
from asap.experiments.shell import (
    Command,
    Start,
    commands_within,
    environment_of,
    gpu_of_directives,
    has_substitution,
    options,
    unread_line,
    words,
)
from asap.flags.environment import is_performance_variable
from asap.hardware import find_chip

_LAUNCHER = re.compile(r"(?:^|[\s/])(?:torchrun|accelerate|deepspeed|mpirun|mpiexec)\s|torch\.distributed\.|srun\s")
_EXPORTED = re.compile(r"[=,](?=[A-Za-z_]\w*=)", re.ASCII)
_DEEPSPEED = re.compile(r"(?:^|[\s/])deepspeed\s")
_FACTORY = re.compile(r"\bllamafactory-cli\s")
_SWIFT = re.compile(r"(?:^|[\s/])(?:swift|megatron)\s+(?:sft|pt|rlhf)\s")
_MPI = re.compile(r"(?:^|[\s/])(?:mpirun|mpiexec)(?:\.\w+)?\s(?:[^;&|]*?\s)??-{1,2}(?:np?|ntasks)[\s=]+(\d+)(?=\s)")
_VISIBLE = "CUDA_VISIBLE_DEVICES"  # it says which devices there are
_INCLUDED = re.compile(r"[\w.-]+:(\d+(?:,\d+)*)", re.ASCII)


def starts_launcher(text: str) -> bool:
    """Whether a script has a command that starts a program on several devices."""
    return _LAUNCHER.search(text) is not None


def processes_of(command: Command) -> int | None:
    """Processes that a command starts on all nodes; ``None`` where it does not say them."""
    said = {option.name: option.words[0] for option in options(command.text) if option.words}
    whole = digits(said.get("num_processes", said.get("world_size", "")))
    each, nodes = digits(said.get("nproc_per_node", "")), digits(said.get("nnodes", "1"))
    if each is not None:
        whole = each * nodes if nodes is not None else None
    elif _FACTORY.search(command.text):
        whole = _environment_count(environment_of(command), _visible(environment_of(command)))
    elif _SWIFT.search(command.text):
        whole = _environment_count(environment_of(command), None)
    elif (ranks := ranks_of_mpi(command.text)) is not None:
        whole = ranks
    elif _DEEPSPEED.search(command.text):
        whole = _deepspeed_count(said, command)
    return whole or None


def ranks_of_mpi(text: str) -> int | None:
    """Processes that ``mpirun -np 16 …`` or ``mpiexec -n 16 …`` starts; ``None`` where another command does."""
    found = _MPI.search(text)
    return digits(found[1]) if found else None


def gpus_of_a_process(command: Command) -> int | None:
    """GPUs of a node that each process of ms-swift sees for itself; ``None`` where the command does not say them."""
    said = environment_of(command)
    visible, each = _visible(said), digits(said.get("NPROC_PER_NODE", "1"))
    return visible // each if visible and each else None


def add_processes(start: Start, experiment: Experiment) -> Experiment:
    """``experiment`` with the processes of a start: those of the command in quotes, else of the one around it."""
    command = start.command if processes_of(start.command) else start.outer
    experiment = set_devices(processes_of(command), experiment)
    said = {option.name: option.words[0] for option in options(command.text) if option.words}
    found = environment_of(command)
    each = said.get("nproc_per_node") or said.get("num_gpus") or found.get("NPROC_PER_NODE")
    nodes = said.get("nnodes") or said.get("num_nodes") or found.get("NNODES")
    return set_nodes(digits(each or ""), digits(nodes or ""), experiment)


def set_nodes(each: int | None, nodes: int | None, experiment: Experiment) -> Experiment:
    """``experiment`` with so many GPUs in each of several nodes, where nothing else is said of nodes."""
    hardware = experiment.hardware
    several = each and nodes and nodes > 1 and hardware.devices in (None, each * nodes)
    if not several or hardware.node is not None:
        return experiment
    source = {"hardware.node": f"{counted(nodes or 0, 'node')} of the launcher"}
    return experiment.knowing(hardware=hardware.model_copy(update={"node": each}), provenance=source)


def set_devices(devices: int | None, experiment: Experiment, machine: str | None = None) -> Experiment:
    """``experiment`` with a number of devices, of that machine of a cloud, where no hardware is said; with a note where
    another one is."""
    known = experiment.hardware.devices
    if not devices or known == devices:
        return experiment
    if known is not None:
        note = f"the launcher starts {counted(devices, 'rank')}; the plan is for the {known} devices that were said"
        return experiment if note in experiment.notes else experiment.knowing(note)
    if machine is not None and not experiment.hardware.name:
        hardware, notes = refer_to_hardware(f"{machine}-{devices}", devices=devices)
        return experiment.knowing(*notes, hardware=hardware)
    return experiment.model_copy(update={"hardware": experiment.hardware.model_copy(update={"devices": devices})})


def set_directives_gpu(text: str, path: Path, experiment: Experiment) -> Experiment:
    """``experiment`` with the kind of GPU that a script asks its scheduler for, where of the hardware its processes
    alone are said."""
    kind, devices = gpu_of_directives(text), experiment.hardware.devices
    if kind is None or devices is None or experiment.hardware.name or find_chip(kind) is None:
        return experiment
    hardware, notes = refer_to_hardware(f"{kind}-{devices}", devices=devices)
    return experiment.knowing(*notes, hardware=hardware, provenance={"hardware": f"{path.name}: gres"})


def _environment_count(said: Mapping[str, str], unsaid: int | None) -> int | None:
    """Of LLaMA-Factory's and ms-swift's commands, which hand variables on to torchrun (``llamafactory/launcher.py``,
    ``swift/cli/main.py``).

    Args:
        said: the variables.
        unsaid: processes of a node where no variable says them.
    """
    each = digits(said["NPROC_PER_NODE"]) if "NPROC_PER_NODE" in said else unsaid
    nodes = digits(said.get("NNODES", "1"))
    return each * nodes if each is not None and nodes is not None else None


def _visible(environment: Mapping[str, str]) -> int | None:
    """GPUs that variables tell a process to see; ``None`` where none does."""
    numbers = environment.get(_VISIBLE, "").split(",")
    return len(numbers) if all(digits(number) is not None for number in numbers) else None


def _deepspeed_count(said: Mapping[str, str], command: Command) -> int | None:
    """Of DeepSpeed's launcher, which takes the GPUs that it is told, else those that are visible
    (``deepspeed/launcher/runner.py``)."""
    if "num_gpus" in said:
        each, nodes = digits(said["num_gpus"]), digits(said.get("num_nodes", "1"))
        return each * nodes if each is not None and nodes is not None else None
    if "include" in said:
        nodes = said["include"].split("@")
        found = [_INCLUDED.fullmatch(node) for node in nodes]
        return sum(len(node[1].split(",")) for node in found if node) if all(found) else None
    if {"num_nodes", "hostfile", "exclude"} & said.keys():
        return None
    return _visible(environment_of(command))


def note_unread_line(text: str, path: Path, experiment: Experiment) -> Experiment:
    """``experiment`` with a note where a line of its script is no bash."""
    if (line := unread_line(text)) is None:
        return experiment
    return experiment.knowing(
        f"what begins in line {line} of {path.name} is no syntax of bash that is read, and left out"
    )


def add_environment(start: Start, experiment: Experiment) -> Experiment:
    """``experiment`` with the variables that change performance and that the command of a script finds, without words
    that only a run can tell: exported, on its line, or said to what is around it (``mpirun -x NCCL_ALGO=Ring …``). What
    is on record already stays."""
    said = start.environment | _assigned(words(start.outer.text))
    for inner in commands_within(start.outer):  # docker run … bash -c "export …"
        said |= inner.scope.environment()
    closed = {
        name: " ".join(word for word in value.split() if not has_substitution(word)) for name, value in said.items()
    }
    found = {
        name: redacted(value)
        for name, value in closed.items()
        if value and is_performance_variable(name) and name != _VISIBLE
    }
    sources = {f"environment.{name}": f"{start.path.name}:{start.outer.line}" for name in found}
    return experiment.knowing(environment=found | experiment.environment, provenance=sources)


def _assigned(words: Sequence[str]) -> dict[str, str]:
    """Variables of a command's words: ``NAME=value``, ``--export=ALL,NAME=value``, of MPICH ``-genv NAME value``."""
    parts = [part for word in words for part in (_EXPORTED.split(word) if word.startswith("--") else (word,))]
    pairs = [(name, value) for name, equals, value in (part.partition("=") for part in parts) if equals]
    mpich = zip(words, words[1:], words[2:], strict=False)
    return dict(pairs) | {name: value for option, name, value in mpich if option in ("-genv", "-env")}


PYTHON = re.compile(r"(?:^|[\s/])python[\d.]*(?=\s)")
_SEVERAL = re.compile(r"(?:^|[\s/])(?:srun|mpirun|mpiexec)\s")
_RANK = re.compile(r"^[ \t]*(?:export\s+)?(?:LOCAL_)?RANK=", re.MULTILINE)
"""What a script gives a process that is one of several: ``export RANK=$SLURM_PROCID``."""
_WORLD = "WORLD_SIZE"
_ONE = "python starts one process, taken as one device: on several, the Trainer's DataParallel is not modelled"


def in_one_process(
    start: str, script: str, environment: Mapping[str, str], path: Path, experiment: Experiment
) -> Experiment:
    """``experiment`` with the one device of such a program, where no hardware is said; with all ranks where the script
    says that it is one of several.

    Args:
        start: the command.
        script: that has it.
        environment: variables that it finds.
        path: the file that has it.
        experiment: what is known besides.

    Raises:
        ConfigError: the process drives several devices by itself.
    """
    ranks, several = digits(environment.get(_WORLD, "")), _visible(environment)
    if (ranks or 0) > 1 or (ranks is None and _RANK.search(script)):
        return set_devices(ranks, experiment)
    if several is not None and several > 1:
        reason = f"starts one process on {several} GPUs: the Trainer's DataParallel is not modelled"
        raise ConfigError(reason, where=str(path), hint=f"start it under torchrun --nproc_per_node {several}")
    if _SEVERAL.search(start):
        return experiment
    unsaid = experiment.hardware.devices is None and several is None
    return set_devices(1, experiment).knowing(*((_ONE,) if unsaid else ()))
