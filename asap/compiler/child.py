"""The child process: describes the slice, writes the step, compiles it, and leaves its answer in a folder.

Run as ``python -m asap.compiler.child FOLDER PARENT``. libtpu may abort the process or never return: hence a process.
"""

import ctypes
import gzip
import os
import re
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asap.compiler.maxtext import lower, mesh_of
from asap.compiler.request import EFFORTS, Memory, Outcome, Request
from asap.core.text import plain

if TYPE_CHECKING:
    from jax.sharding import Mesh

ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-16",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
"""Keeps libtpu from asking for a machine that is not there, and lets several run side by side."""

_PARENT_DIED = 1  # PR_SET_PDEATHSIG of prctl(2)
_SHOWN = 600
_EXCEEDS = re.compile(r"(?:\(|[Uu]sed )([\d.]+)([KMGT])\)? (?:exceeds available HBM \(|of )([\d.]+)([KMGT])")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class StepError(Exception):
    """The user's step raised."""


def main() -> None:
    """Compile what the folder asks for."""
    folder, parent = Path(sys.argv[1]), int(sys.argv[2])
    _end_with(parent)
    request = Request.model_validate_json((folder / "request.json").read_text(encoding="utf-8"))
    begin = time.monotonic()
    outcome = _answer(request, folder)
    done = outcome.model_copy(update={"seconds": time.monotonic() - begin, "effort": request.effort})
    (folder / "outcome.json").write_text(done.model_dump_json(), encoding="utf-8")


def _end_with(parent: int) -> None:
    """Be killed when the parent dies, or end at once if it is already gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def _answer(request: Request, folder: Path) -> Outcome:
    sys.path[:0] = request.path
    try:
        return _compile(request, folder)
    except StepError as error:
        return Outcome(status="step_failed", message=str(error))
    except Exception as error:
        text = str(error)
        if "RESOURCE_EXHAUSTED" in text and "hbm" in text.casefold():
            needed, available = exceeded(text)
            return Outcome(
                status="does_not_fit", message=plain(text, _SHOWN), needed_bytes=needed, available_bytes=available
            )
        return Outcome(status="refused", message=plain(f"{type(error).__name__}: {text}", _SHOWN))


def _compile(request: Request, folder: Path) -> Outcome:
    mesh = None if request.maxtext is not None else describe_mesh(request)
    lowered, options = _lower_maxtext(request, folder) if mesh is None else (_lower(request, mesh), {})
    if request.effort != "full" and not request.on_cpu:
        options["exec_time_optimization_effort"] = EFFORTS[request.effort]
    compiled = lowered.compile(compiler_options=options or None)
    axes: tuple[tuple[str, int], ...] = ()
    if mesh is None:
        mesh, axes = mesh_of(compiled)
    with gzip.open(folder / "program.hlo.gz", "wt", encoding="utf-8") as stream:
        stream.write(compiled.as_text() or "")
    devices = list(mesh.devices.flat)
    if request.on_cpu:
        return Outcome(
            status="sharded",
            argument_bytes=compiled.memory_analysis().argument_size_in_bytes,
            places=((),) * len(devices),
            slices=(0,) * len(devices),
        )
    return Outcome(
        status="compiled",
        memory=_memory(compiled.memory_analysis()),
        places=tuple(tuple(device.coords) for device in devices),
        slices=tuple(getattr(device, "slice_index", None) or 0 for device in devices),
        axes=axes,
    )


def _lower(request: Request, mesh: "Mesh") -> Any:
    function, arguments = _step(request, mesh)
    try:
        return function.lower(*arguments)
    except Exception as error:
        raise StepError(_their_line(error)) from error


def _lower_maxtext(request: Request, folder: Path) -> tuple[Any, dict[str, Any]]:
    try:
        return lower(request.maxtext or {}, slice_name(request), request.slices, request.devices_per_slice, folder)
    except (Exception, SystemExit) as error:
        raise StepError(_their_line(error)) from error


def slice_name(request: Request) -> str:
    """What libtpu calls the slice."""
    return f"{request.chip}:{'x'.join(map(str, request.topology))}"


def describe_mesh(request: Request) -> "Mesh":
    """The slices of a request as a mesh of described devices, laid onto the torus by JAX."""
    import jax
    from jax.experimental import mesh_utils, topologies
    from jax.sharding import Mesh

    from asap.plans import AXES

    if request.on_cpu:
        return Mesh(np.array(jax.devices("cpu")).reshape([request.plan.degree(axis) for axis in AXES]), AXES)
    options: dict[str, Any] = {"num_slices": request.slices} if request.slices > 1 else {}
    if request.chip == "v4":
        options["chip_config_name"] = "megacore"
    devices = topologies.get_topology_desc(slice_name(request), "tpu", **options).devices
    ici, dcn = request.plan.ici.degrees, request.plan.dcn.degrees
    if request.slices > 1:
        placed = mesh_utils.create_hybrid_device_mesh(ici, dcn, devices, allow_split_physical_axes=True)
    else:
        placed = mesh_utils.create_device_mesh(ici, devices, allow_split_physical_axes=True)
    return Mesh(placed, AXES)


def exceeded(message: str) -> tuple[float | None, float | None]:
    """Bytes needed and available from ``(79.25G) exceeds available HBM (15.75G)`` or ``Used 20.1G of 15.75G hbm``."""
    found = _EXCEEDS.search(message)
    if found is None:
        return None, None
    needed, unit, available, available_unit = found.groups()
    return float(needed) * _UNITS[unit], float(available) * _UNITS[available_unit]


def _step(request: Request, mesh: "Mesh") -> tuple[Any, tuple[Any, ...]]:
    if request.train_step is None:
        from asap.compiler.train_step import reference_step
        from asap.models import Architecture

        step = reference_step(request.model or Architecture(), request.workload, request.plan, mesh)
        return step.function, step.arguments
    import importlib

    module, _, name = request.train_step.partition(":")
    try:
        function, arguments = getattr(importlib.import_module(module), name)(mesh)
    except Exception as error:
        raise StepError(_their_line(error)) from error
    return function, tuple(arguments)


def _their_line(error: BaseException) -> str:
    """Where in the user's files it was raised, and what was raised."""
    ours, libraries = os.path.dirname(__file__) + os.sep, os.sep + "site-packages" + os.sep
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename[:1] != "<"]
    own = [f for f in frames if libraries not in f.filename and not f.filename.startswith(ours)]
    place = f"{own[-1].filename}:{own[-1].lineno}: " if own else ""
    return plain(f"{place}{type(error).__name__}: {error}", _SHOWN)


def _memory(found: Any) -> Memory:
    return Memory(
        peak=found.peak_memory_in_bytes,
        arguments=found.argument_size_in_bytes,
        outputs=found.output_size_in_bytes,
        aliased=found.alias_size_in_bytes,
        temporaries=found.temp_size_in_bytes,
        code=found.generated_code_size_in_bytes,
        host=found.host_argument_size_in_bytes + found.host_temp_size_in_bytes,
    )


if __name__ == "__main__":
    main()
