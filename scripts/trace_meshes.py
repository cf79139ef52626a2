"""How well a trace of one mesh tells the step time of others: recorded on eight virtual CPU devices, then predicted.

    python scripts/trace_meshes.py build/meshes

Each mesh is recorded by scripts/record_run.py, unless it lies there already. Each trace then predicts every other mesh,
and what was measured there is the truth. The rates of a virtual device are measured here, as no chip has them.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from asap.experiments import ExperimentStore
from asap.hardware import Slice
from asap.hardware.chip import Chip, Network, Scaleup
from asap.models import Architecture
from asap.plans import Plan
from asap.prediction import Measured, predict
from asap.prediction.from_trace.predict import predict_run
from asap.prediction.from_trace.run import Run, changed_run
from asap.traces.analysis.step_time import step_time
from asap.traces.graph.build import build_graph
from asap.traces.graph.graph import Graph
from asap.traces.load import load_trace

MESHES = ("8x1x1", "4x2x1", "4x1x2", "2x2x2", "2x4x1", "1x8x1", "1x4x2")
DEVICES, STEPS = 8, 6
ALIKE = 0.03
"""Step times closer than this are not ranked: undisturbed steps of real runs vary by as much."""


def main(folder: Path) -> None:
    runs = {mesh: _run(mesh) for mesh in MESHES}
    graphs = {mesh: _recorded(folder / mesh, mesh) for mesh in MESHES}
    measured = {mesh: step_time(graph).measured_s for mesh, graph in graphs.items()}
    errors: list[float] = []
    anchored: list[float] = []
    inside, right, pairs = 0, 0, 0
    for base in MESHES:
        found = {}
        for other in (mesh for mesh in MESHES if mesh != base):
            target = changed_run(runs[base], [f"plan:{runs[other].plan}"])
            answer = predict_run(graphs[base], runs[base], target)
            found[other] = answer.value
            errors.append(answer.value / measured[other] - 1)
            anchored.append(_anchored(runs[base], measured[base], target) / measured[other] - 1)
            inside += answer.low <= measured[other] <= answer.high
        for one, other in itertools.combinations(found, 2):
            if abs(measured[one] / measured[other] - 1) > ALIKE:
                pairs += 1
                right += (found[one] < found[other]) == (measured[one] < measured[other])
    result = {
        "measured_s": {mesh: round(seconds, 4) for mesh, seconds in measured.items()},
        "predictions": len(errors),
        "median_error": statistics.median(map(abs, errors)),
        "largest_error": max(map(abs, errors)),
        "inside_interval": inside / len(errors),
        "architecture_median_error": statistics.median(map(abs, anchored)),
        "unchanged_median_error": statistics.median(
            abs(measured[base] / measured[other] - 1) for base, other in itertools.permutations(MESHES, 2)
        ),
        "pairs": pairs,
        "ranked_right": right / pairs if pairs else None,
    }
    print(json.dumps(result, indent=2))


def _anchored(run: Run, seconds: float, target: Run) -> float:
    """What the architecture alone says of the target, from the measured step of the run."""
    known = run.architecture, run.workload, run.hardware
    (found,) = predict(target.plan, *known, baseline=Measured(run.plan, seconds))
    assert found.step_time is not None
    return found.step_time.value


def _recorded(log: Path, mesh: str) -> Graph:
    if not log.exists():
        script = Path(__file__).with_name("record_run.py")
        command = [sys.executable, str(script), "--out", str(log), "--mesh", mesh, "--steps", str(STEPS)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return build_graph(load_trace([log]))


def _run(mesh: str) -> Run:
    record = ExperimentStore().get("cpu-8dev")
    data, sequence, model = (int(degree) for degree in mesh.split("x"))
    plan = Plan.parse(f"data={data} seq={sequence} model={model} remat=none")
    return Run(record.model or Architecture(), record.workload, Slice(_device(), DEVICES), plan)


def _device() -> Chip:
    """One of the virtual devices, which share the cores and the memory of this machine."""
    flops, memory, latency = _RATES
    share = (os.cpu_count() or 1) / DEVICES
    return Chip(
        name="cpu",
        title="virtual CPU device",
        kind="gpu",
        peak_flops={"fp32": share * flops, "bf16": share * flops},
        matmul_tile=8,
        hbm_bytes=2**34,
        hbm_bandwidth=memory / DEVICES,
        onchip_bytes=2**20,
        scaleup=Scaleup(domain=DEVICES, bandwidth=memory / DEVICES / 2, latency=latency),
        network=Network(bandwidth=memory / DEVICES / 2, latency=latency),
        sources=dict.fromkeys(
            ("peak_flops", "matmul_tile", "hbm_bytes", "hbm_bandwidth", "onchip_bytes", "scaleup", "network"),
            "measured by this script, or does not matter to the step time",
        ),
    )


def _rates() -> tuple[float, float, float]:
    """FLOP/s of a core, bytes/s of the memory, and seconds until eight threads have met."""
    side, size, meetings = 512, 2**27, 50
    matrix, block = np.ones((side, side), np.float32), np.ones(size, np.uint8)
    product = min(_timed(lambda: matrix @ matrix) for _ in range(5))
    copy = min(_timed(block.copy) for _ in range(3))
    barrier = threading.Barrier(DEVICES)
    threads = [threading.Thread(target=lambda: [barrier.wait() for _ in range(meetings)]) for _ in range(DEVICES)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cores = os.cpu_count() or 1
    return 2 * side**3 / product / cores, 2 * size / copy, (time.perf_counter() - begin) / meetings


def _timed(work: object) -> float:
    begin = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - begin


_RATES = _rates()

if __name__ == "__main__":
    main(Path(sys.argv[1]))
