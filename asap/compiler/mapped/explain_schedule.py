"""Feedback on a modelled schedule: where its time goes, and which decision would change that.

The rules look at the schedule and at what the algorithm lets one decide; none knows the name of an algorithm.
"""

from collections.abc import Iterator, Sequence

from asap.compiler.algorithms.choices import Choices
from asap.compiler.mapped.failures import Code, write_line
from asap.compiler.mapped.virtual_run import ModelledProgram
from asap.compiler.programs.request import CompileOutcome
from asap.compiler.schedule.interconnect import device_rates
from asap.compiler.schedule.simulator import Timeline
from asap.core.feedback import Feedback, Repair, repaired
from asap.core.units import format_bytes, format_percent, format_seconds
from asap.hardware import Slice
from asap.mapping.algorithm import ALGORITHMS
from asap.mapping.check import check

WORTH_TELLING = 0.05
"""Share of the time below which nothing is said of a cause."""

_SPARE = 0.5
"""Share of the HBM in use below which there is room for copies."""

_MOST_PANELS, _WIDEST_HALO = 4, 4


def explain_schedule(
    text: str,
    choices: Choices,
    program: ModelledProgram,
    timeline: Timeline,
    outcome: CompileOutcome,
    orders: Sequence[tuple[str, float]],
) -> tuple[Feedback, ...]:
    """What takes the time, the largest share first.

    Args:
        text: the program.
        choices: its decisions.
        program: as compiled.
        timeline: under its own order of devices.
        outcome: of the compiler; for its memory.
        orders: other orders, with the modelled time of the same schedule in seconds, the shortest first.
    """
    hardware = program.hardware
    found = [
        *_orders(text, timeline, orders),
        *_collectives(text, choices, timeline, hardware),
        *_copies(text, choices, timeline, hardware),
        *_compute(text, choices, timeline),
        *_memory(text, choices, outcome, hardware),
    ]
    return tuple(found)


def _orders(text: str, timeline: Timeline, orders: Sequence[tuple[str, float]]) -> Iterator[Feedback]:
    if not orders or orders[0][1] > 0.99 * timeline.seconds:
        return
    order, seconds = orders[0]
    yield Feedback(
        code=Code.RING_LOST,
        explanation=f"devices that exchange are not neighbours: the same schedule takes {format_seconds(seconds)} "
        f"instead of {format_seconds(timeline.seconds)} where they are closer",
        suggestion=f"write order {order}",
        repair=write_line(text, "order", order),
        repaired_step_time_s=seconds,
    )


def _collectives(text: str, choices: Choices, timeline: Timeline, hardware: Slice) -> Iterator[Feedback]:
    rows = sorted(timeline.collectives.items(), key=lambda row: -row[1].exposed)
    exposed = sum(totals.exposed for _, totals in rows)
    ways = ALGORITHMS[choices.algorithm].exchanges
    for (kind, axes, execution), totals in rows:
        share = totals.exposed / timeline.seconds
        if kind == "all-to-all" and choices.exchange != "all_to_all":
            yield Feedback(
                code=Code.RESHARDING,
                explanation=f"the compiler moves {format_bytes(totals.size)} between layouts along {axes}: "
                "nothing in the program asks for an all-to-all",
                suggestion="exchange by permute" if "permute" in ways else "let operands lie as they are used",
                repair=write_line(text, "exchange", "permute") if "permute" in ways else None,
            )
        if execution == "synchronous" and share >= WORTH_TELLING:
            permute = "permute" in ways and choices.exchange != "permute"
            yield Feedback(
                code=Code.SYNCHRONOUS_COLLECTIVE,
                explanation=f"{kind} along {axes} stops the device for {format_percent(share, 0)} of the time",
                suggestion="exchange by permute, which starts early" if permute else _shorten_words(choices, axes),
                repair=write_line(text, "exchange", "permute") if permute
                else _shorter(text, choices, axes, timeline, hardware),
            )  # fmt: skip
    if rows and exposed / timeline.seconds >= WORTH_TELLING:
        (kind, axes, _), totals = rows[0]
        explanation = (
            f"{format_percent(exposed / timeline.seconds, 0)} of the time waits for transfers, most of it for {kind}"
            f" along {axes} ({format_bytes(totals.size)})"
        )
        for suggestion, repair in _hide(text, choices, axes, timeline, hardware):
            yield Feedback(code=Code.EXPOSED_COLLECTIVE, explanation=explanation, suggestion=suggestion, repair=repair)


def _hide(
    text: str, choices: Choices, axes: str, timeline: Timeline, hardware: Slice
) -> Iterator[tuple[str, Repair | None]]:
    """Decisions that hide or save transfers, the likeliest first."""
    settings = ALGORITHMS[choices.algorithm].settings
    if not choices.overlap:
        yield "let transfers overlap", write_line(text, "overlap", "on")
    if (repair := _shorter(text, choices, axes, timeline, hardware)) is not None:
        yield _shorten_words(choices, axes), repair
    if "halo" in settings and choices.halo < _WIDEST_HALO:
        yield "exchange wider halos less often", write_line(text, "halo", str(2 * choices.halo))
    if "panels" in settings and choices.panels < _MOST_PANELS:
        yield (
            "send panel by panel, each beside the product of the one before",
            write_line(text, "panels", str(_MOST_PANELS)),
        )
    if "stationary" in settings:
        for other in ("C", "A", "B"):
            if other != choices.stationary:
                yield f"leave {other} where it is", write_line(text, "stationary", other)
    if (repair := _other_way(text, choices)) is not None:
        yield "exchange another way", repair


def _copies(text: str, choices: Choices, timeline: Timeline, hardware: Slice) -> Iterator[Feedback]:
    share = timeline.operations["data movement"].seconds / timeline.seconds if timeline.operations else 0.0
    if share < WORTH_TELLING:
        return
    arrays = ALGORITHMS[choices.algorithm].arrays
    repair, suggestion = _moved(text, choices, choices.axes[-1], choices.axes[0], hardware), "keep rows in one piece"
    if arrays:
        other = "row" if arrays[0] in choices.by_column else "col"
        repair, suggestion = write_line(text, f"layout {arrays[0]}", other), f"store {arrays[0]} by {other}"
    elif "panels" in ALGORITHMS[choices.algorithm].settings and choices.panels > 1:
        repair, suggestion = write_line(text, "panels", "1"), "send in one panel, which needs no copy"
    yield Feedback(
        code=Code.LAYOUT_COPY, explanation=f"{format_percent(share, 0)} of the time only moves data within the device",
        suggestion=suggestion, repair=repair,
    )  # fmt: skip


def _compute(text: str, choices: Choices, timeline: Timeline) -> Iterator[Feedback]:
    exposed = sum(totals.exposed for totals in timeline.collectives.values()) / timeline.seconds
    if exposed >= WORTH_TELLING:
        return
    repair, suggestion = None, "nothing is left to hide: this mapping is near the best for this grid"
    if choices.by_column or ALGORITHMS[choices.algorithm].arrays:
        array = ALGORITHMS[choices.algorithm].arrays[0]
        other = "row" if array in choices.by_column else "col"
        repair, suggestion = write_line(text, f"layout {array}", other), f"store {array} by {other}"
    elif choices.halo > 1:
        repair = write_line(text, "halo", str(choices.halo // 2))
        suggestion = "narrow the halo, whose cells are computed twice"
    yield Feedback(
        code=Code.COMPUTE_BOUND,
        explanation=f"{format_percent(1 - exposed, 0)} of the time computes or moves data within the device",
        suggestion=suggestion, repair=repair,
    )  # fmt: skip


def _memory(text: str, choices: Choices, outcome: CompileOutcome, hardware: Slice) -> Iterator[Feedback]:
    capacity = device_rates(hardware.chip).hbm_bytes
    peak = outcome.memory.hbm_peak if outcome.memory else None
    if peak is None or peak > _SPARE * capacity:
        return
    repair, suggestion = None, "a larger problem fits"
    if choices.panels > 1:
        repair, suggestion = write_line(text, "panels", "1"), "gather at once: there is room for it"
    yield Feedback(
        code=Code.MEMORY_TO_SPARE,
        explanation=f"{format_bytes(peak)} of {format_bytes(capacity)} HBM are in use at the peak",
        suggestion=suggestion, repair=repair,
    )  # fmt: skip


def _shorten_words(choices: Choices, axes: str) -> str:
    return f"make {axes} shorter" if len(choices.grid) > 1 else "send less: another exchange"


def _shorter(text: str, choices: Choices, axes: str, timeline: Timeline, hardware: Slice) -> Repair | None:
    """The grid whose slowest axis is half as long, and the one that waits least twice, if the algorithm can use it."""
    waits = dict.fromkeys(choices.axes, 0.0)
    for (_, names, _), totals in timeline.collectives.items():
        for name in names.removesuffix(" (part)").split("+"):
            if name in waits:
                waits[name] += totals.exposed
    slow = max(choices.axes, key=lambda axis: (axis in axes.split("+"), waits[axis]))
    others = sorted((axis for axis in choices.axes if axis != slow), key=lambda axis: waits[axis])
    found = (_moved(text, choices, slow, fast, hardware) for fast in others)
    return next((repair for repair in found if repair is not None), None)


def _moved(text: str, choices: Choices, source: str, target: str, hardware: Slice) -> Repair | None:
    """The grid with one axis half as long and another twice; ``None`` if the algorithm cannot use it."""
    sides = dict(zip(choices.axes, choices.grid, strict=True))
    if source == target or sides[source] % 2:
        return None
    sides[source] //= 2
    sides[target] *= 2
    repair = write_line(text, "grid", f"({', '.join(map(str, sides.values()))})")
    return None if check(_after(text, repair), None, hardware).feedback else repair


def _after(text: str, repair: Repair) -> str:
    return repaired(text, [Feedback(code="", explanation="", suggestion="", repair=repair)])


def _other_way(text: str, choices: Choices) -> Repair | None:
    ways = ALGORITHMS[choices.algorithm].exchanges
    if len(ways) < 2:
        return None
    following = ways[(ways.index(choices.exchange) + 1) % len(ways)]
    return write_line(text, "exchange", following)
