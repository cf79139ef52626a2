"""Predictions, logs, profiles and traces in one process."""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.timing import Result, calls, median

if TYPE_CHECKING:
    from asap.hardware import Slice
    from asap.models import Architecture, Workload
    from asap.plans import Plan


ROOT = Path(__file__).resolve().parents[2]


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
    from asap.prediction.from_architecture import predict

    decoder = _decoder()
    plan = Plan.parse("data=64 model=8 remat=full")
    return {"seconds": median(lambda: predict(plan, *decoder)), "limit_seconds": 0.010}


def predict_space() -> Result:
    """Every plan of 512 devices over six axes as ``asap predict`` prints it, with parts and intervals, warm."""
    from asap.prediction.from_architecture import predict

    plans, decoder = _plans(), _decoder()
    return {"plans": len(plans), "seconds": median(lambda: predict(plans, *decoder))}


def step_model_rate() -> Result:
    """The formulas of time and memory alone, over the same plans as arrays: plans a second on one core. The inputs are
    new each time: they keep what both need."""
    from asap.prediction.step_model.encoding import step_inputs
    from asap.prediction.step_model.groups import Groups
    from asap.prediction.step_model.memory import memory
    from asap.prediction.step_model.step import predict_step
    from asap.prediction.uncertainty.calibration import load_calibration

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


STEPS, LAUNCHES, OPERATORS = 50, 2_000, 3
"""Made trace: of each step, launches; of each launch, operators of the host that nothing reads."""

_PEAK = "import re, sys; {load}; print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
"""Of the process alone: ``ru_maxrss`` begins with what the process that started it had (Linux)."""

_OURS = "from asap.traces.recording import load_trace; load_trace([sys.argv[1]])"
_HTA = """import logging; logging.disable(logging.CRITICAL)
from hta.common.trace import Trace
Trace(trace_files={0: sys.argv[1]}, trace_dir="/").parse_traces(use_multiprocessing=False)"""
_PLAIN = "import gzip, json; json.load(gzip.open(sys.argv[1]))"


def trace_load() -> Result:
    """Reading the columns of a compressed trace against ``json`` reading the same file."""
    from asap.traces.recording import load_trace

    with _trace() as path:
        events = gzip.decompress(path.read_bytes()).count(b'"ph"')
        found = calls(lambda: load_trace([path]), lambda: _read(path), 0.5, runs=3)
    seconds = found["seconds"]
    return {"events": events, "events_per_second": events / seconds if isinstance(seconds, float) else None, **found}


def trace_memory() -> Result:
    """Peak memory of a process that loads a trace, against HolisticTraceAnalysis or, where that is not, ``json``.

    ``ASAP_BENCH_HTA`` is the Python of an environment in which HolisticTraceAnalysis is installed.
    """
    hta = os.environ.get("ASAP_BENCH_HTA")
    with _trace() as path:
        ours = _peak_bytes(sys.executable, _OURS, path)
        peers = _peak_bytes(hta, _HTA, path) if hta else _peak_bytes(sys.executable, _PLAIN, path)
    peer = "HolisticTraceAnalysis" if hta else "json"
    return {"bytes": ours, "peer": peer, "peer_bytes": peers, "ratio": ours / peers, "limit_ratio": 1.0}


def trace_what_if() -> Result:
    """A change of a loaded graph, with its interval."""
    from asap.traces.graph.build import build_graph
    from asap.traces.recording import load_trace
    from asap.traces.what_if.change import parse_change
    from asap.traces.what_if.predict import predict_change

    with _trace() as path:
        graph = build_graph(load_trace([path]))
    change = parse_change("scale:matmul=0.5")
    seconds = median(lambda: predict_change(graph, [change]))
    nodes = len(graph.measured)
    return {
        "nodes": nodes,
        "seconds": seconds,
        "seconds_per_million_nodes": 1e6 * seconds / nodes,
        "limit_seconds_per_million_nodes": 1.0,
    }


def _peak_bytes(python: str, load: str, path: Path) -> int:
    code = _PEAK.format(load=f"exec({load!r})")
    done = subprocess.run([python, "-c", code, str(path)], check=True, capture_output=True, text=True)
    return 1024 * int(done.stdout.split()[-1])


def _read(path: Path) -> object:
    with gzip.open(path) as file:
        return json.load(file)


@contextmanager
def _trace() -> Iterator[Path]:
    if given := os.environ.get("ASAP_BENCH_TRACE"):
        yield Path(given)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json.gz"
        with gzip.open(path, "wt", compresslevel=1) as file:
            file.write('{"traceEvents": [' + ",".join(_events()) + "\n]}\n")
        yield path


def _events() -> Iterator[str]:
    """Laid out as by libkineto/src/output_json.cpp."""
    for step in range(STEPS):
        begin = step * LAUNCHES * 20
        yield _event("user_annotation", f"ProfilerStep#{step}", 1, begin, LAUNCHES * 20, {"Ev Idx": step})
        for number in range(LAUNCHES):
            now, correlation = begin + number * 20, step * LAUNCHES + number + 1
            for depth in range(OPERATORS):
                shapes = {"External id": correlation, "Input Dims": [[512, 4096], [4096, 4096]], "Ev Idx": depth}
                yield _event("cpu_op", ("aten::linear", "aten::matmul", "aten::mm")[depth], 1, now, 15 - depth, shapes)
            yield _event("cuda_runtime", "cudaLaunchKernel", 1, now + 5, 4, {"correlation": correlation})
            kernel = {"stream": 7, "device": 0, "correlation": correlation, "grid": [128, 4, 1], "block": [256, 1, 1]}
            yield _event("kernel", "ampere_bf16_s16816gemm_bf16_128x128_ldg8", 7, now + 12, 18, kernel)


def _event(category: str, name: str, thread: int, start: int, length: int, arguments: dict[str, object]) -> str:
    return (
        f'\n  {{\n    "ph": "X", "cat": "{category}", "name": "{name}", "pid": 1, "tid": {thread},\n'
        f'    "ts": {start}.250, "dur": {length},\n    "args": {{\n      {json.dumps(arguments)[1:-1]}\n    }}\n  }}'
    )
