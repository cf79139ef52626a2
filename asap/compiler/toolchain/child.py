"""The child process: describes the slice, lowers the step, compiles it, and writes its answer into a folder.

Run as ``python -m asap.compiler.toolchain.child FOLDER PARENT``: libtpu may abort the process or never return.
"""

import ctypes
import gzip
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

from asap.compiler.lowering.lower import StepError, lower_step, mesh_of
from asap.compiler.lowering.mesh import describe_mesh
from asap.compiler.programs.request import EFFORTS, LEVELS, CompiledMemory, CompileOutcome, CompileRequest, Effort
from asap.core.text import plain

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
"""Keeps libtpu from querying for TPU hardware, and lets several processes load it at once."""

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_LONGEST_MESSAGE = 600
_HBM_LIMITS = re.compile(r"(?:\(|[Uu]sed )([\d.]+)([KMGT])\)? (?:exceeds available HBM \(|of )([\d.]+)([KMGT])")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def main() -> None:
    """Compile what the folder asks for."""
    folder, parent = Path(sys.argv[1]), int(sys.argv[2])
    die_with(parent)
    request = CompileRequest.model_validate_json((folder / "request.json").read_text(encoding="utf-8"))
    begin = time.monotonic()
    outcome = _outcome_of(request, folder)
    done = outcome.model_copy(update={"seconds": time.monotonic() - begin, "effort": request.effort})
    (folder / "outcome.json").write_text(done.model_dump_json(), encoding="utf-8")


def die_with(parent: int) -> None:
    """Be killed when the parent dies, or end at once if it is already gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def _outcome_of(request: CompileRequest, folder: Path) -> CompileOutcome:
    sys.path[:0] = request.path
    try:
        return _compile(request, folder)
    except StepError as error:
        return CompileOutcome(status="step_failed", message=str(error))
    except Exception as error:
        text = str(error)
        if "RESOURCE_EXHAUSTED" in text and "hbm" in text.casefold():
            needed, available = parse_hbm_limits(text)
            return CompileOutcome(
                status="does_not_fit",
                message=plain(text, _LONGEST_MESSAGE),
                needed_bytes=needed,
                available_bytes=available,
            )
        return CompileOutcome(status="refused", message=plain(f"{type(error).__name__}: {text}", _LONGEST_MESSAGE))


def _compile(request: CompileRequest, folder: Path) -> CompileOutcome:
    mesh = None if request.maxtext is not None else describe_mesh(request)
    lowered, options = lower_step(request, mesh, folder)
    if request.effort != "full" and not request.on_cpu:
        options |= _effort_options(request.effort)
    compiled = lowered.compile(compiler_options=options or None)
    axes: tuple[tuple[str, int], ...] = ()
    if mesh is None:
        mesh, axes = mesh_of(compiled)
    elif request.problem is not None:
        axes = tuple(mesh.shape.items())
    with gzip.open(folder / "program.hlo.gz", "wt", encoding="utf-8") as stream:
        stream.write(compiled.as_text() or "")
    devices = list(mesh.devices.flat)
    if request.on_cpu:
        return CompileOutcome(
            status="sharded",
            argument_bytes=compiled.memory_analysis().argument_size_in_bytes,
            coordinates=((),) * len(devices),
            slices=(0,) * len(devices),
        )
    return CompileOutcome(
        status="compiled",
        memory=_memory(compiled.memory_analysis()),
        coordinates=tuple(tuple(device.coords) for device in devices),
        slices=tuple(getattr(device, "slice_index", None) or 0 for device in devices),
        axes=axes,
    )


def _effort_options(effort: Effort) -> dict[str, float | str]:
    """How the interpreter's JAX says it: a number until 0.10, a level since."""
    import jax

    if "jax_exec_time_optimization_effort" in jax.config.values:
        return {"exec_time_optimization_effort": EFFORTS[effort]}
    return {"optimization_level": LEVELS[effort]}


def parse_hbm_limits(message: str) -> tuple[float | None, float | None]:
    """Bytes needed and available from ``(79.25G) exceeds available HBM (15.75G)`` or ``Used 20.1G of 15.75G hbm``."""
    found = _HBM_LIMITS.search(message)
    if found is None:
        return None, None
    needed, unit, available, available_unit = found.groups()
    return float(needed) * _UNITS[unit], float(available) * _UNITS[available_unit]


def _memory(found: Any) -> CompiledMemory:
    return CompiledMemory(
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
