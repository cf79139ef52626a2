"""The Python that compiles each program, its versions, and an import path with this package alone."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import asap
from asap.compiler.programs.request import CompileRequest
from asap.compiler.toolchain import versions
from asap.core.errors import ConfigError
from asap.core.files import scratch_folder
from asap.core.text import plain


def package_path(folder: Path) -> str:
    """A ``PYTHONPATH`` that starts with a new folder holding only a link to this package."""
    alone = folder / "path"
    alone.mkdir()
    (alone / "asap").symlink_to(Path(asap.__file__).resolve().parent, target_is_directory=True)
    return os.pathsep.join(part for part in (str(alone), os.environ.get("PYTHONPATH", "")) if part)


_TIMEOUT_S = 120.0


def versions_of(requests: Sequence[CompileRequest]) -> list[dict[str, str]]:
    """For each program the versions of jax, jaxlib, libtpu and, where it is asked for, MaxText.

    Raises:
        ConfigError: one of them is missing, or libtpu is not the one that jax pins.
    """
    wanted = [(request.python, request.maxtext is not None, not request.on_cpu) for request in requests]
    found = {need: _versions_in(*need) for need in dict.fromkeys(wanted)}
    return [found[need] for need in wanted]


def _versions_in(python: str, maxtext: bool, tpu: bool) -> dict[str, str]:
    if not python:
        return versions.installed_versions(maxtext, tpu)
    where = f"--python {plain(python)}"
    options = [*([versions.MAXTEXT_OPTION] if maxtext else []), *([versions.TPU_OPTION] if tpu else [])]
    with scratch_folder("python") as folder:
        command = [python, "-m", versions.__name__, *options]
        environment = {**os.environ, "PYTHONPATH": package_path(folder)}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"cannot be run ({type(error).__name__})", where=where) from None
    lines = done.stderr.strip().splitlines()
    if done.returncode:
        raise ConfigError(plain(lines[-1], 300) if lines else f"exits with code {done.returncode}", where=where)
    return json.loads(done.stdout)


def virtual_devices(count: int) -> str:
    """``XLA_FLAGS`` for ``count`` virtual CPU devices whose machine code is made fast rather than good.

    XLA compiles a step in a quarter of the time without its MLIR emitters of fusions.
    """
    flags = ("--xla_backend_optimization_level=0", "--xla_cpu_use_fusion_emitters=false")
    return " ".join((f"--xla_force_host_platform_device_count={count}", *flags))
