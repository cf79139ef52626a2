"""Predictions, profiles and logs in one process."""

import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.timing import Result, calls, median

if TYPE_CHECKING:
    from asap.hardware import Slice
    from asap.models import Architecture, Workload
    from asap.plans import Plan

ROOT = Path(__file__).resolve().parents[2]


def profile_adapter() -> Result:
    """Reading a profile of a TPU against the bare XProf conversion of the same tools, in one process.

    600,000 events of four devices in 14 MB: real recordings are as large or larger. ``ASAP_BENCH_PROFILE`` is the
    path of another one.
    """
    from asap.profiles import locate
    from asap.profiles.reading import read_run
    from asap.profiles.xprof.converter import TOOLS, linked, run_tool

    with tempfile.TemporaryDirectory() as folder:
        run = locate(os.environ.get("ASAP_BENCH_PROFILE") or _synthetic_profile(Path(folder)))

        def bare() -> dict[str, bytes]:
            with linked(run.files) as links:
                return {tool: run_tool(tool, links[:hosts], run.files) for tool, hosts in TOOLS.items()}

        return calls(lambda: read_run(run, lambda stage: None), bare, 0.10, runs=3)


def _synthetic_profile(folder: Path) -> Path:
    sys.path.insert(0, str(ROOT / "tests" / "profiles"))
    from xspaces import TRAINING, tpu_profile  # pyright: ignore[reportMissingImports]

    copies = 50
    operations = [
        replace(operation, name=f"{operation.name}{copy}", us=operation.us // copies)
        for copy in range(copies)
        for operation in TRAINING
    ]
    path = folder / "host.xplane.pb"
    path.write_bytes(tpu_profile(operations, devices=4, steps=600))
    return path


def log_scan() -> Result:
    """Reading a training log of 16 ranks, 200 MB, against a loop over its lines that looks for one word."""
    from asap.experiments.logs.read import read_log

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.log"
        path.write_text("".join(_lines_of_steps(200_000_000)))
        size = path.stat().st_size / 1e6
        found = calls(lambda: read_log(path), lambda: _count_lines(path), 3.0, runs=3)
    seconds = found["seconds"]
    return {"megabytes_per_second": size / seconds if isinstance(seconds, float) else None, **found}


def _lines_of_steps(size: int) -> Iterator[str]:
    """Lines of Megatron-LM's steps, each with what NCCL says on 16 ranks."""
    written = step = 0
    while written < size:
        step += 1
        lines = (
            f" iteration {step:8d}/ 9000000 | elapsed time per iteration (ms): {2000 + step % 37}.0 | lm loss: 2.6 |\n"
        )
        for rank in range(16):
            lines += f"node:{rank}:{rank} [{rank}] NCCL INFO Channel 00/0 : {rank} -> 0[0] via P2P/CUMEM/read {step}\n"
        written += len(lines)
        yield lines


def _count_lines(path: Path) -> int:
    with path.open("rb") as lines:
        return sum(b"iteration" in line for line in lines)


def predict_one() -> Result:
    """One plan with its intervals and parts, warm."""
    from asap.plans import Plan
    from asap.prediction import predict

    decoder = _decoder()
    plan = Plan.parse("data=64 model=8 remat=full")
    return {"seconds": median(lambda: predict(plan, *decoder)), "limit_seconds": 0.010}


def predict_space() -> Result:
    """Every plan of 512 devices over six axes as ``asap predict`` prints it, with parts and intervals, warm."""
    from asap.prediction import predict

    plans, decoder = _plans(), _decoder()
    return {"plans": len(plans), "seconds": median(lambda: predict(plans, *decoder))}


def step_model_rate() -> Result:
    """The formulas of time and memory alone, over the same plans as arrays: plans a second on one core. The inputs are
    new each time: they keep what both need."""
    from asap.prediction import load_calibration
    from asap.prediction.step_model.encoding import step_inputs
    from asap.prediction.step_model.groups import Groups
    from asap.prediction.step_model.memory import memory
    from asap.prediction.step_model.step import predict_step

    plans, (architecture, workload, hardware) = _plans(), _decoder()
    inputs = step_inputs(plans, architecture, workload, hardware)
    constants = load_calibration().full.resolve_one(Groups.of(hardware, workload))

    def time_and_memory() -> None:
        new = replace(inputs, plan=replace(inputs.plan))
        predict_step(new, constants)
        memory(new)

    seconds = median(time_and_memory)
    return {"plans": len(plans), "plans_per_second": len(plans) / seconds, "limit_plans_per_second": 1e6}


def _plans() -> list["Plan"]:
    from asap.plans import AXES, Plan, Remat
    from asap.plans.enumeration import enumerate_plans
    from asap.plans.validity import Constraints

    like = Plan(remat=Remat.FULL)
    return enumerate_plans(Constraints(devices_per_slice=512, slices=1), AXES, like=like)


def _decoder() -> tuple["Architecture", "Workload", "Slice"]:
    from asap.hardware import resolve_hardware
    from asap.models import Architecture, Workload, find_architecture

    architecture = find_architecture("llama2-70b")
    assert isinstance(architecture, Architecture)
    workload = Workload(global_batch=512, sequence_length=4096, framework="MaxText")
    return architecture, workload, resolve_hardware("v5p", "8x8x8").slice
