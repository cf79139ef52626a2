"""A run that died out of memory where the model expects it to fit: the finding, and what may explain it.

As with a step that is not as expected (:mod:`asap.evidence.judgement`), each reading of the run is asked whether the
model would meet what was seen, here whether it would not have fitted.
"""

from collections.abc import Iterator
from dataclasses import replace

from asap.core.units import format_bytes, format_odds
from asap.evidence.cause_words import sentence
from asap.evidence.judgement import Cause, Judgement, judge
from asap.evidence.readings import CauseName, Run, Variant, predicted, readings, run_of
from asap.experiments.observed import Ending
from asap.plans import Remat
from asap.prediction.memory_outcomes import outcomes_of
from asap.prediction.prediction import MemoryPrediction
from asap.study.study import Study

SURPRISING = 0.9
"""Likelihood of fitting from which on a run that died is not explained by the scatter of the model: a judgement."""
SHOWN = 4
_NEGLIGIBLE = 0.02
_OTHERS_HOLD = 0.05
"""Share of a device's memory that processes beside the run must hold to count: contexts of CUDA hold 1 to 3 %."""
_MOST_FRAGMENTATION = 1.35
"""Of memory that PyTorch's allocator reserved over what tensors held, in reports of runs that died of it."""
_MORE = (2, 4, 8)
_PEAKS = (1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Times as much as a step holds: batches of varying length, and evaluation, may hold any of them."""
PRIOR: dict[CauseName, float] = {
    "sequence": 0.25, "batch": 0.20, "no recomputation": 0.15, "whole states": 0.05, "attention": 0.04,
    "precision": 0.05, "peaks": 0.10, "other processes": 0.04, "fragmentation": 0.03,
}  # fmt: skip
"""How likely each is before anything is known. A judgement and no fit; it decides between readings that explain it."""
_EXPECTS: dict[CauseName, str] = {
    "peaks": "Steps run before it dies.",
    "other processes": "nvidia-smi shows memory in use before the run starts.",
    "fragmentation": "The error says that much is reserved by PyTorch but unallocated.",
}
_CHECKS: dict[CauseName, str] = {
    "sequence": "the longest sequence of a batch, and what packing or padding makes of it",
    "batch": "sequences of one device in one microbatch, as the log prints them",
    "no recomputation": "whether the log names activation checkpointing, and a memory snapshot or profile of one step",
    "whole states": "memory right after the model and optimizer are made: it falls with every device that shares them",
    "attention": "the names of the attention kernels in a profile",
    "precision": "the data types of parameters, gradients and optimizer as the log prints them",
    "peaks": "the step at which it dies, and a run without evaluation and checkpoints",
    "other processes": "nvidia-smi on every node before the start",
    "fragmentation": "the run with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
}


def judge_study(study: Study) -> Judgement | None:
    """Judge what was measured of a run: that it died out of memory, else its step; ``None`` where nothing is known."""
    return judge_memory(study) or judge(study)


def judge_memory(study: Study) -> Judgement | None:
    """Judge that the plan that runs died out of memory; ``None`` where it did not, or where the model agrees."""
    run, outcomes = run_of(study), {one.plan: one for one in outcomes_of(study)}
    outcome = outcomes.get(study.plan) if study.plan is not None else None
    if run is None or outcome is None or outcome.fitted is not False:
        return None
    now = predicted(run)
    memory = now.memory if now is not None else None
    if memory is None or (memory.probability_fits or 0.0) < SURPRISING:
        return None
    ending = study.experiment.observed.ending if study.experiment.observed is not None else None
    weighed = _weighed(run, memory, ending)
    total = sum(weight for weight, _ in weighed)
    causes = tuple(
        Cause(
            name=one.cause, statement=sentence(one, run), expects=_expects(one), check=_CHECKS[one.cause],
            weight=weight / total,
        )
        for weight, one in weighed
        if weight >= _NEGLIGIBLE * total
    )  # fmt: skip
    held = outcome.peak_bytes or memory.capacity_bytes
    told = ending is not None and ending.kind == "out_of_memory"
    return Judgement(
        verdict="out of memory", held_bytes=held, expected=memory.total, causes=causes[:SHOWN],
        source=f"{outcome.source}: {ending}" if told else outcome.source,
        odds=format_odds(memory.probability_fits or 0.0),
    )  # fmt: skip


def _weighed(run: Run, memory: MemoryPrediction, ending: Ending | None) -> list[tuple[float, Variant]]:
    """The variant of each cause that explains most, with its weight, the likeliest first."""
    seen: dict[CauseName, float] = {"peaks": _peaks(ending), "other processes": _others(ending)}
    found: dict[CauseName, tuple[float, Variant]] = {}
    for variant in _variants(run):
        weight = PRIOR[variant.cause] * variant.weight * _died(variant, memory) * seen.get(variant.cause, 1.0)
        if weight > found.get(variant.cause, (0.0, variant))[0]:
            found[variant.cause] = (weight, variant)
    return sorted(found.values(), key=lambda one: -one[0])


def _variants(run: Run) -> Iterator[Variant]:
    """Readings under which the run would hold more."""
    yield from (one for one in readings(run) if one.cause in PRIOR and one.cause != "batch")
    batch = run.workload.global_batch
    for times in _MORE if batch else ():
        work = run.workload.model_copy(update={"global_batch": (batch or 1) * times})
        yield Variant("batch", (batch or 1) * times, replace(run, workload=work), weight=1 / times)
    if run.plan.remat not in (None, Remat.NONE):
        kept = run.plan.model_copy(update={"remat": Remat.NONE})
        yield Variant("no recomputation", 1.0, replace(run, plan=kept))
    sharded = run.plan.ici.data
    if sharded > 1:
        whole = run.plan.with_ici(data=1, replica=run.plan.ici.replica * sharded)
        yield Variant("whole states", 1.0, replace(run, plan=whole))
    yield from (Variant("peaks", times, run, times, 1 / times) for times in _PEAKS)
    if run.hardware.chip.kind == "gpu":
        yield Variant("other processes", 1.0, run)
        yield Variant("fragmentation", _MOST_FRAGMENTATION, run, _MOST_FRAGMENTATION)


def _died(variant: Variant, memory: MemoryPrediction) -> float:
    """How likely the run would have died under a reading."""
    if variant.cause == "other processes":
        return 1.0
    if variant.added != 1.0:
        return float(memory.total.value * variant.added > memory.capacity_bytes)
    found = predicted(variant.run)
    then = found.memory if found is not None else None
    if then is None:
        return 0.0
    return 1.0 - (then.probability_fits if then.probability_fits is not None else float(then.fits))


def _peaks(ending: Ending | None) -> float:
    """Odds for what happens in some steps only: a run that dies before its first step had none."""
    if ending is None:
        return 1.0
    return 0.0 if ending.before_first_step else 4.0


def _others(ending: Ending | None) -> float:
    """Odds for processes beside the run, by what the error says is held and free."""
    if ending is None or not (ending.capacity_bytes and ending.in_use_bytes) or ending.free_bytes is None:
        return 1.0
    others = 1 - (ending.in_use_bytes + ending.free_bytes) / ending.capacity_bytes
    return 20.0 if others > _OTHERS_HOLD else 0.0


def _expects(variant: Variant) -> str:
    if variant.cause in _EXPECTS:
        return _EXPECTS[variant.cause]
    found = predicted(variant.run)
    then = found.memory.total.value if found is not None and found.memory is not None else 0.0
    return f"HBM would be about {format_bytes(then)}."
