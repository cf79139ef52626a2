"""Causes of a measurement in words: what it would be, what else would be seen, and the check that tells."""

import math
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

from asap.core.errors import AsapError
from asap.core.text import plain
from asap.core.units import exact, format_bytes, format_rate, format_seconds, significant
from asap.evidence.readings import RATES, CauseName, Run, Variant, passes_of_experts, usual_rate
from asap.plans import Remat
from asap.plans.axes import Axis
from asap.prediction.prediction import Prediction

_TOLD_BY_MEMORY = 0.1
"""Relative difference of HBM from which on its peak tells two readings apart. Judgement: what is asked."""


@cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("causes.toml").read_text(encoding="utf-8"))


def sentence(variant: Variant, run: Run) -> str:
    """What it would be, without a capital and a full stop."""
    work, rate = run.workload, usual_rate(run, variant.cause if variant.cause in RATES else "network")
    variables = plain(run.set_causes.get(variant.cause, ""), 80)
    return (f"{variables} is set: " if variables else "") + _table()[variant.cause]["statement"].format(
        nodes="slices" if run.hardware.chip.kind == "tpu" else "nodes",
        rate=format_rate(variant.size, "B"), usual=format_rate(rate, "B"), size=significant(variant.size, 2),
        count=exact(round(variant.size)), seconds=format_seconds(variant.size),
        sequence=f"{work.sequence_length or 0:,}", batch=f"{work.global_batch or 0:,}",
        precision=variant.run.workload.precision,
        stated=work.precision or "bf16",
        remat=run.plan.remat or Remat.FULL,
        counting=_counting(variant, run) if variant.cause == "counting" else "",
        passes=f"{passes_of_experts(run):,}",
        settings=" or ".join(run.unmodelled[:2]),
        gathered=", and ZeRO-3 gathers their weights one by one" if work.zero_stage == 3 else "",
    )  # fmt: skip


def _counting(variant: Variant, run: Run) -> str:
    times = variant.added if variant.added >= 1 else 1 / variant.added
    count = exact(round(times))
    if math.isclose(times, run.plan.microbatches or 1) and times > 1:
        return f"the figure is of {'all' if variant.added > 1 else 'one'} of {count} microbatches, not of a step"
    if math.isclose(times, 1000.0):
        return f"the figure is in {'milliseconds' if variant.added > 1 else 'thousands of seconds'}"
    if math.isclose(times, 60.0):
        return f"the figure is {'in minutes' if variant.added < 1 else 'a minute counted as a second'}"
    if variant.added > 1:
        return f"the figure is of {count} steps, as logs that print every {count} give it"
    return f"the figure is of one step in {count}, or of one of {count} nodes"


def expectation(variant: Variant, run: Run, now: Prediction, then: Prediction) -> str:
    """What else would be seen."""
    alone = _alone(run) if variant.cause == "network" else None
    return alone or _table()[variant.cause].get("expects") or _memory(now, then)


def _memory(now: Prediction, then: Prediction) -> str:
    if now.memory is None or then.memory is None:
        return ""
    before, after = now.memory.total.value, then.memory.total.value
    if abs(after / before - 1) < _TOLD_BY_MEMORY:
        return f"HBM stays as it is, about {format_bytes(before)}."
    return f"HBM peaks at about {format_bytes(after)} instead of {format_bytes(before)}."


def _alone(run: Run) -> str | None:
    """What one node alone would take for the same work of each device, where data parallelism crosses the nodes."""
    from asap.prediction.from_architecture import predict

    nodes, plan, batch = run.hardware.domains, run.plan, run.workload.global_batch
    crossing: tuple[Axis, ...] = ("replica", "data")
    axis: Axis | None = next((axis for axis in crossing if plan.degree(axis) % nodes == 0), None)
    if axis is None or not batch or batch % nodes or plan.dcn.devices > 1:
        return None
    small = plan.model_copy(update={"ici": plan.ici.model_copy(update={axis: plan.degree(axis) // nodes})})
    hardware = replace(run.hardware, chips_per_slice=run.hardware.chips // nodes, slices=1)
    try:
        workload = run.workload.model_copy(update={"global_batch": batch // nodes})
        alone = predict(small, run.model, workload, hardware)[0].step_time
    except AsapError:
        return None
    if alone is None:
        return None
    return f"One node alone, with the same work for each device, takes about {format_seconds(alone.value)} a step."


def check_of(name: CauseName, run: Run) -> str:
    """What tells whether it is so."""
    cause = _table()[name]
    return cause.get("gpu", cause["check"]) if run.hardware.chip.kind == "gpu" else cause["check"]


def memory_check(name: CauseName, key: str = "memory_check") -> str:
    """What tells, where what is to be explained is what a run holds; or what else would be seen."""
    return _table()[name].get(key, "")
