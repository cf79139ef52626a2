"""What came of a run's memory against the model's word: it died where it should fit, or ran where it should not.

As with a step that is not as expected (:mod:`asap.evidence.judgement`), each reading of the run is asked whether the
model would meet what was seen, here whether it would not have fitted, or would.
"""

from collections.abc import Iterator
from dataclasses import replace

from asap.core.units import format_bytes, format_odds
from asap.evidence.cause_words import memory_check, sentence
from asap.evidence.judgement import SHOWN, Cause, Judgement, judge
from asap.evidence.readings import CauseName, Run, Variant, predicted, readings, run_of, working
from asap.experiments.observed import Ending
from asap.models.parameters import count_parameters
from asap.prediction.memory_outcomes import is_unexplained, outcomes_of
from asap.prediction.prediction import MemoryPrediction
from asap.study.study import Study

_NEGLIGIBLE = 0.02  # odds below which a cause is not listed; judgement: how many are
_OTHERS_HOLD = 0.05
"""Share of a device's memory that processes beside the run must hold to count: contexts of CUDA hold 1 to 3 %."""
_MOST_FRAGMENTATION = 1.35
"""Of what PyTorch's allocator reserved over what tensors held, in reports of deaths. Judgement: the order of causes."""
_TIMES, _UNSAID = (2, 4, 8), 8.0
"""Times as many sequences; odds of another kernel where the run does not say. Judgement: the order of causes."""
_PEAKS = (1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Times what a step holds, in batches of varying length and evaluation. Judgement: the order of causes."""
_COPIES = (1, 2, 3)  # of all weights in 32 bits, as a checkpoint is read or written
PRIOR: dict[CauseName, float] = {
    "sequence": 0.25, "batch": 0.20, "no recomputation": 0.15, "whole states": 0.05, "attention": 0.04,
    "precision": 0.05, "peaks": 0.10, "saving": 0.06, "loading": 0.06, "other processes": 0.04, "fragmentation": 0.03,
    "recomputation": 0.15, "sharded states": 0.20, "offload": 0.10, "smaller states": 0.10,
}  # fmt: skip
"""How likely each is beforehand, as between readings that explain what is seen. Judgement: the order of causes."""


def judge_study(study: Study) -> Judgement | None:
    """Judge what was measured of a run: its memory where the model does not explain it, else its step; ``None`` where
    nothing is known."""
    memory, step = judge_memory(study), judge(study)
    ran = memory is None or memory.verdict == "ran"
    return step if step is not None and ran and (step.is_finding or memory is None) else memory


def judge_memory(study: Study) -> Judgement | None:
    """Judge that the plan that runs died out of memory, or that it ran; ``None`` where neither is known, or where the
    model agrees. What died after steps were measured fits by itself: something else took the memory."""
    run, outcomes = run_of(study), {one.plan: one for one in outcomes_of(study)}
    outcome = outcomes.get(study.plan) if study.plan is not None else None
    now = predicted(run) if run is not None and outcome is not None else None
    memory = now.memory if now is not None else None
    if run is None or outcome is None or memory is None:
        return None
    died, ending = not outcome.fitted, study.experiment.observed.ending if study.experiment.observed else None
    stepped = died and study.profile is not None and study.profile.kpis.step_time_s is not None
    if not (is_unexplained(outcome, memory) or (stepped and memory.fits)):
        return None
    weighed = _weighed(run, memory, ending or (Ending(kind="out_of_memory") if stepped else None), died)
    total = sum(weight for weight, _ in weighed)
    causes = tuple(
        Cause(
            name=one.cause, statement=sentence(one, run), expects=_expects(one), check=memory_check(one.cause),
            weight=weight / total,
        ) for weight, one in weighed if weight >= _NEGLIGIBLE * total
    )  # fmt: skip
    source = f"{outcome.source}: {ending}" if ending and ending.kind == "out_of_memory" else outcome.source
    return Judgement(
        verdict="out of memory" if died else "ran", held_bytes=memory.capacity_bytes, expected=memory.total,
        causes=causes[:SHOWN], source=source, odds=format_odds(memory.probability_fits or 0.0),
    )  # fmt: skip


def _weighed(run: Run, memory: MemoryPrediction, ending: Ending | None, died: bool) -> list[tuple[float, Variant]]:
    """The variant of each cause that explains most, with its weight, the likeliest first."""
    seen = _odds(ending) if ending is not None and died else {}
    found: dict[CauseName, tuple[float, Variant]] = {}
    for variant in _larger_readings(run, memory) if died else _smaller_readings(run):
        fits = _fits(variant, memory)
        weight = PRIOR[variant.cause] * variant.weight * (1 - fits if died else fits) * seen.get(variant.cause, 1.0)
        if weight > found.get(variant.cause, (0.0, variant))[0]:
            found[variant.cause] = (weight, variant)
    return sorted(found.values(), key=lambda one: -one[0])


def _larger_readings(run: Run, memory: MemoryPrediction) -> Iterator[Variant]:
    """Readings under which the run would hold more."""
    for one in readings(run):
        if one.cause in ("sequence", "attention", "precision", "no recomputation"):
            yield replace(one, weight=_UNSAID) if memory.unsaid and one.cause == "attention" else one
    for size in [times * (run.workload.global_batch or 0) for times in _TIMES]:
        if size:
            yield Variant(
                "batch", size, working(run, global_batch=size), weight=(run.workload.global_batch or 0) / size
            )
    if run.plan.ici.data > 1:
        yield Variant("whole states", 1.0, _over(run, data=1, replica=run.plan.ici.replica * run.plan.ici.data))
    yield from (Variant("peaks", times, run, times, 1 / times) for times in _PEAKS)
    if run.hardware.chip.kind == "gpu":
        for copies in _COPIES:
            share = copies * 4.0 * count_parameters(run.model).total / memory.total.value
            yield Variant("saving", copies, run, 1 + share, 1 / copies)
            yield Variant("loading", copies, run, share, 1 / copies)
        yield Variant("other processes", 1.0, run)
        yield Variant("fragmentation", _MOST_FRAGMENTATION, run, _MOST_FRAGMENTATION)


def _smaller_readings(run: Run) -> Iterator[Variant]:
    """Readings under which the run would hold less."""
    yield from (one for one in readings(run) if one.cause in ("sequence", "recomputation"))
    for times in _TIMES:
        size, rest = divmod(run.workload.global_batch or 0, times)
        if size and not rest:
            yield Variant("batch", size, working(run, global_batch=size), weight=1 / times)
    if run.plan.ici.replica > 1:
        yield Variant("sharded states", 1.0, working(run, zero_stage=1))
        data = run.plan.ici.data * run.plan.ici.replica
        yield Variant("sharded states", 1.0, _over(run, replica=1, data=data), weight=0.5)
    if not run.plan.offload:
        yield Variant("offload", 1.0, replace(run, plan=run.plan.model_copy(update={"offload": ("optimizer",)})))
    moments = {"first_moment_precision": "int8", "second_moment_precision": "int8"}
    yield Variant("smaller states", 1.0, working(run, **moments, weight_precision="bf16", fsdp_upcasts=None))


def _over(run: Run, **degrees: int) -> Run:
    return replace(run, plan=run.plan.with_ici(**degrees))


def _fits(variant: Variant, memory: MemoryPrediction) -> float:
    """How likely the run fits under a reading; processes of others may hold any of its memory."""
    if variant.cause == "other processes":
        return 0.0
    if variant.added != 1.0:
        return float(memory.total.value * variant.added <= memory.capacity_bytes)
    found = predicted(variant.run)
    return 0.5 if found is None or found.memory is None else found.memory.probability_fits or 0.0


def _odds(ending: Ending) -> dict[CauseName, float]:
    """Odds by what the error says: a run that dies before its first step had no checkpoint to save, one that dies
    after it was loaded; and others hold what the error counts neither as the run's nor as free."""
    before = ending.before_first_step
    found: dict[CauseName, float] = dict.fromkeys(("peaks", "saving"), 0.0 if before else 4.0)
    found["loading"] = 4.0 - found["saving"]
    if ending.capacity_bytes and ending.in_use_bytes and ending.free_bytes is not None:
        others = 1 - (ending.in_use_bytes + ending.free_bytes) / ending.capacity_bytes
        found["other processes"] = 20.0 if others > _OTHERS_HOLD else 0.0
    return found


def _expects(variant: Variant) -> str:
    found = predicted(variant.run)
    held = found.memory.total.value if found is not None and found.memory is not None else 0.0
    return memory_check(variant.cause, "expects") or f"HBM would be about {format_bytes(held)}."
