"""Mapped programs run on virtual CPU devices, at small size, next to the plain program.

Run as ``python -m asap.compiler.mapped.virtual_run FOLDER``: the number of devices is fixed when JAX starts.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path

from asap.compiler.mapped.difference import Difference, difference
from asap.compiler.toolchain.versions import compiler_versions
from asap.compiler.toolchain.virtual_devices import virtual_devices
from asap.core.errors import AsapError
from asap.core.files import scratch_folder
from asap.core.text import plain

_LIMIT_S = 600.0


def differences(programs: Sequence[str], topology: tuple[int, ...]) -> list[Difference]:
    """How the result of each program differs from the plain program's.

    Args:
        programs: checked mapping programs of algorithms.
        topology: of the machine; there are as many virtual devices.

    Raises:
        AsapError: the process died.
        ConfigError: jax is not installed.
    """
    compiler_versions(tpu=False)
    with scratch_folder("virtual") as folder:
        (folder / "request.json").write_text(json.dumps({"programs": list(programs), "topology": topology}))
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": virtual_devices(prod(topology))}
        command = [sys.executable, "-m", "asap.compiler.mapped.virtual_run", str(folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LIMIT_S)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise AsapError(f"the run on virtual devices died: {plain(reason, 200)}")
        return [Difference(**each) for each in json.loads((folder / "answer.json").read_text())]


def _main(folder: Path) -> None:
    request = json.loads((folder / "request.json").read_text())
    found = [_run(text, tuple(request["topology"])) for text in request["programs"]]
    (folder / "answer.json").write_text(json.dumps([asdict(each) for each in found]))


def _run(text: str, topology: tuple[int, ...]) -> Difference:
    import jax

    from asap.compiler.algorithms.build import BENCHMARKS, build
    from asap.compiler.algorithms.choices import choices_of
    from asap.compiler.algorithms.on_grid import grid_of, run_on
    from asap.mapping.language.parse import parse

    program, _ = parse(text)
    choices = choices_of(program, len(jax.devices()))
    try:
        distributed = build(choices, BENCHMARKS[choices.algorithm].small)
        found = run_on(distributed, grid_of(choices, jax.devices(), program, topology))
    except Exception as error:
        return Difference(float("inf"), f"raises {plain(f'{type(error).__name__}: {error}', 300)}")
    return difference(found, distributed.plain())


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
