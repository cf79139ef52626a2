"""How well a trace of one mesh tells the step time of others: recorded on eight virtual CPU devices, then predicted.

    python scripts/trace_meshes.py build/meshes --size wide deep

Each mesh is recorded by scripts/record_run.py, three times in turn, unless it lies there already. Other work on the
machine only adds time, so the fastest recording counts. Two meshes are ranked if every recording of one is faster than
every recording of the other: three and three of the same lie apart so in one case of ten (Mann & Whitney, "On a Test of
Whether one of Two Random Variables is Stochastically Larger than the Other", 1947). Each trace then predicts every
other mesh. The allocator keeps what is freed, like those of accelerators: glibc returns buffers above 32 MiB to Linux,
which then clears all their pages again in every step. Run it as root, or on a machine that does nothing else.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NamedTuple

from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.from_architecture import Measured, predict
from asap.prediction.from_trace.predict import predict_runs
from asap.prediction.from_trace.run import Run, virtual_devices
from asap.traces.analysis.iterations import step_time
from asap.traces.graph.build import build_graph
from asap.traces.graph.graph import Graph
from asap.traces.recording import load_trace
from record_run import CPU_DEVICES, SIZES, Size, degrees, facts

RECORDINGS = 3
MESHES = ("8x1x1", "4x2x1", "4x1x2", "2x2x2", "2x4x1", "1x8x1", "1x4x2")
STEPS = 8
KEEPS_MEMORY = f"glibc.malloc.mmap_threshold={2**32}:glibc.malloc.trim_threshold={2**34}:glibc.malloc.arena_max=1"
"""For GLIBC_TUNABLES: no buffer of a step goes back to Linux when it is freed (mallopt(3), M_MMAP_THRESHOLD)."""


class Recorded(NamedTuple):
    """The fastest recording of a mesh, and the seconds of a step in each, ascending."""

    run: Run
    graph: Graph
    steps: Sequence[float]

    @property
    def seconds(self) -> float:
        """Of the fastest."""
        return self.steps[0]

    def lies_apart(self, other: "Recorded") -> bool:
        """Whether no recording of one is as fast as any of the other."""
        return self.steps[-1] < other.steps[0] or other.steps[-1] < self.steps[0]


@dataclass
class Compared:
    """Predictions against measurements: errors, and which pairs are in the right order."""

    errors: list[float] = field(default_factory=list)
    of_the_architecture: list[float] = field(default_factory=list)
    if_nothing_changed: list[float] = field(default_factory=list)
    inside: list[bool] = field(default_factory=list)
    ranked: list[bool] = field(default_factory=list)

    def add(self, other: "Compared") -> None:
        """Count another decoder's predictions, too."""
        for each in fields(self):
            getattr(self, each.name).extend(getattr(other, each.name))

    def figures(self) -> dict[str, object]:
        """Medians and shares."""
        return {
            "predictions": len(self.errors),
            "median_error": statistics.median(self.errors),
            "largest_error": max(self.errors),
            "inside_interval": statistics.fmean(self.inside),
            "architecture_median_error": statistics.median(self.of_the_architecture),
            "unchanged_median_error": statistics.median(self.if_nothing_changed),
            "pairs": len(self.ranked),
            "ranked_right": statistics.fmean(self.ranked) if self.ranked else None,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, nargs="+", default=list(SIZES), help="of the decoder and its batch")
    arguments = parser.parse_args()
    found, together = dict[str, object](), Compared()
    for size in arguments.size:
        folder = arguments.folder / size
        for number, mesh in itertools.product(range(RECORDINGS), MESHES):
            _record(folder / str(number) / mesh, size, mesh)
        meshes = {mesh: _recorded(folder, SIZES[size], mesh) for mesh in MESHES}
        noise = statistics.median(each.steps[1] / each.seconds - 1 for each in meshes.values())
        compared = compare(list(meshes.values()))
        together.add(compared)
        measured = {mesh: round(each.seconds, 4) for mesh, each in meshes.items()}
        found[size] = {"measured_s": measured, "recorded_again_median_difference": noise, **compared.figures()}
    print(json.dumps({"sizes": found, "together": together.figures()}, indent=2))


def compare(meshes: Sequence[Recorded]) -> Compared:
    """All predictions of one decoder against all measurements."""
    found = Compared()
    for base in meshes:
        others = [each for each in meshes if each is not base]
        answers = predict_runs(base.graph, base.run, [other.run for other in others])
        for other, answer in zip(others, answers, strict=True):
            found.errors.append(abs(answer.value / other.seconds - 1))
            found.of_the_architecture.append(abs(_anchored(base, other) / other.seconds - 1))
            found.if_nothing_changed.append(abs(base.seconds / other.seconds - 1))
            found.inside.append(answer.low <= other.seconds <= answer.high)
        for (one, first), (two, second) in itertools.combinations(zip(others, answers, strict=True), 2):
            if one.lies_apart(two):
                found.ranked.append((first.value < second.value) == (one.seconds < two.seconds))
    return found


def _anchored(base: Recorded, other: Recorded) -> float:
    """What the architecture alone says of the other, from the measured step of the run."""
    known = base.run.architecture, base.run.workload, base.run.hardware
    (found,) = predict(other.run.plan, *known, baseline=Measured(base.run.plan, base.seconds))
    assert found.step_time is not None
    return found.step_time.value


def _record(log: Path, size: str, mesh: str) -> None:
    if log.exists():
        return
    script = Path(__file__).with_name("record_run.py")
    command = [sys.executable, str(script), "--out", str(log), "--size", size, "--mesh", mesh, "--steps", str(STEPS)]
    settings = {**os.environ, "GLIBC_TUNABLES": KEEPS_MEMORY}
    if subprocess.run([*command, "--first"], stdout=subprocess.DEVNULL, env=settings, check=False).returncode:
        sys.exit(f"{mesh} was not recorded")


def _recorded(folder: Path, size: Size, mesh: str) -> Recorded:
    known = facts(size, degrees(mesh))
    plan = Plan.parse(" ".join(f"{axis}={degree}" for axis, degree in known["plan"].items()) + " remat=none")
    run = Run(Architecture(**known["model"]), Workload(**known["workload"]), virtual_devices(CPU_DEVICES), plan)
    graphs = [build_graph(load_trace([log / mesh])) for log in sorted(folder.iterdir())]
    graphs.sort(key=_seconds)
    return Recorded(run, graphs[0], [_seconds(graph) for graph in graphs])


def _seconds(graph: Graph) -> float:
    return step_time(graph).measured_s


if __name__ == "__main__":
    main()
