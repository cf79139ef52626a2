"""How the lines of a run are written, and the whole command that starts it."""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from asap.core.errors import PlanError
from asap.stacks.accelerate.stack import OPTION
from asap.stacks.launchers import TITLES, Stack
from asap.stacks.megatron.releases import JOINT, YAML_FILE
from asap.stacks.registry import STACK
from asap.stacks.torchtitan.lines import PYTHON
from asap.stacks.trainer.arguments import SECTION
from asap.stacks.writing import PRIMUS_MODULE

_DECIDING = (f"{SECTION}.{OPTION}", JOINT, PYTHON, STACK, YAML_FILE, PRIMUS_MODULE)


def form_of(settings: Mapping[str, object]) -> dict[str, object]:
    """What of a run's settings decides the form of its lines, without the values that a plan says itself."""
    return {key: settings[key] for key in _DECIDING if key in settings}


_STARTS: dict[Stack, tuple[str, tuple[str, ...]]] = {
    "maxtext": ("python3 -m MaxText.train {file} {options}", (".yml", ".yaml")),
    "torchtitan": (
        "torchrun --nproc_per_node={gpus} --nnodes={nodes} -m torchtitan.train --job.config_file {file} {options}",
        (".toml",),
    ),
}
"""How a program is started (README of MaxText; run_train.sh of torchtitan), and the endings of its configurations."""
_SOURCE = re.compile(r"^([^:,;]+?\.(?:ya?ml|toml))(?::|$)")


def start_command(stack: Stack, line: str, sources: Iterable[str], gpus: int, nodes: int) -> str:
    """The command with a plan's settings as options.

    Args:
        stack: whose program is started.
        line: what is changed, as :func:`asap.stacks.launchers.launch_lines` gives it.
        sources: where values of the record come from, which name its file.
        gpus: devices of a node.
        nodes: how many.

    Raises:
        PlanError: the program takes no options, or the run was not given as its configuration file.
    """
    form, endings = _STARTS.get(stack, ("", ()))
    files = [found[1] for source in sources if (found := _SOURCE.match(source)) and found[1].endswith(endings)]
    if not form or not files:
        raise PlanError(
            f"no whole command is known for {TITLES[stack]} of this run",
            hint="add the line to the command that starts it",
        )
    options = _as_options(line) if stack == "torchtitan" else " ".join(line.split())
    return form.format(file=shlex.quote(PurePath(files[0]).name), options=options, gpus=gpus, nodes=nodes)


def _as_options(toml: str) -> str:
    """``--parallelism.tensor_parallel_degree 1`` for each setting of TOML."""
    import tomlkit

    tables = tomlkit.parse(toml).unwrap()
    return " ".join(
        f"--{table}.{key} {shlex.quote(str(value))}"
        for table, entries in tables.items()
        for key, value in entries.items()
    )
