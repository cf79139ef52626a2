"""The schedule of a compiled program, simulated, as tables of collectives and of compute."""

from asap.compiler.programs.request import CompileOutcome, CompileRequest
from asap.compiler.schedule.collectives import CollectiveReader
from asap.compiler.schedule.hlo import read_module
from asap.compiler.schedule.interconnect import Interconnect, device_rates
from asap.compiler.schedule.simulator import ScheduleSimulator, Timeline
from asap.compiler.verification import CollectiveRow, ComputeRow
from asap.core.errors import BadInputError
from asap.core.units import format_rate
from asap.hardware import Slice
from asap.plans import AXES
from asap.plans.replica_groups import NamedMesh
from asap.plans.torus import split_axes


def simulate(request: CompileRequest, outcome: CompileOutcome, hardware: Slice) -> tuple[Timeline | None, list[str]]:
    """The timeline of a compiled program, and what to know about it; no timeline where there is no schedule."""
    if not outcome.program:
        return None, []
    names, lengths = zip(*(outcome.axes or ((axis, request.plan.degree(axis)) for axis in AXES)), strict=True)
    axes = len(hardware.topology or ())
    interconnect = Interconnect(hardware, tuple(chip[:axes] for chip in outcome.coordinates), outcome.slices)
    try:
        module = read_module(outcome.program)
        collectives = CollectiveReader(module, NamedMesh(names, lengths), interconnect)
        timeline = ScheduleSimulator(module, collectives, device_rates(hardware.chip)).run()
    except (BadInputError, LookupError, ValueError) as error:
        return None, [f"the schedule cannot be read ({type(error).__name__}: {error}): no collectives and no step time"]
    return timeline, [*sorted(timeline.notes), *_shared_axis_notes(request, interconnect)]


def _shared_axis_notes(request: CompileRequest, interconnect: Interconnect) -> list[str]:
    """For each mesh axis that shares a torus axis, the bandwidth that its gathers reach."""
    topology = request.topology
    mesh = NamedMesh(AXES, request.plan.ici.degrees)
    notes = []
    for axis in AXES if request.slices == 1 and topology else ():
        if axis in split_axes(request.plan.ici, topology):
            reached = interconnect.gather_bandwidth(mesh.groups(axis))
            best = max(interconnect.hardware.axis_bandwidth(index) for index in range(len(topology)))
            cost = f"reach {format_rate(reached, 'B/s')} of the {format_rate(best, 'B/s')} of an unshared torus axis"
            cost = cost if reached < best else "lose no bandwidth by it"
            notes.append(f"{axis} shares a torus axis with another mesh axis: its gathers {cost}")
    return notes


def tabulate(timeline: Timeline | None, timed: bool) -> tuple[tuple[CollectiveRow, ...], tuple[ComputeRow, ...]]:
    """Rows on collectives and on compute, the longest first; without times unless they are ``timed``."""
    if timeline is None:
        return (), ()
    collectives = [
        CollectiveRow(
            kind=kind, axes=axes, execution=execution, count=totals.count, size_bytes=totals.size,
            busy_s=totals.busy if timed else None, exposed_s=totals.exposed if timed else None,
            algorithms=tuple(sorted(totals.algorithms)),
        )
        for (kind, axes, execution), totals in timeline.collectives.items()
    ]  # fmt: skip
    compute = [
        ComputeRow(category=name, count=totals.count, seconds=totals.seconds, unestimated=totals.unestimated)
        for name, totals in timeline.operations.items()
        if timed
    ]
    return (
        tuple(sorted(collectives, key=lambda row: (-(row.busy_s or 0.0), -row.size_bytes))),
        tuple(sorted(compute, key=lambda row: -row.seconds)),
    )
