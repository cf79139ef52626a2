"""Compiles the best candidates, and updates their memory, intervals and order with the results."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from asap.compiler.programs.options import CompileOptions
from asap.compiler.verification import Verification
from asap.core.errors import BadInputError
from asap.core.units import Provenance, Quantity
from asap.plans import Plan
from asap.prediction.prediction import COMPILED, MemoryPrediction, Prediction
from asap.proposals.ranked_candidates import RankedCandidates
from asap.proposals.selection.candidate import Candidate, fits, set_prediction
from asap.proposals.selection.choice import choose

Verify = Callable[[Sequence[Plan]], Sequence[Verification]]

ROUNDS = 4
"""Rounds of replacing plans that do not fit; each compiles those of the best three that are new. Judgement: how long
compiling may take."""

SOURCE = "modelled and compiled, each weighed by its interval"


def rank_compiled(
    ranked: RankedCandidates, options: CompileOptions, progress: Callable[[str], None]
) -> RankedCandidates:
    """All candidates of a study, after the incumbent and the best three were compiled.

    Raises:
        BadInputError: compiling for the chip needs the chip itself.
        InsufficientEvidenceError: model, hardware or workload are not known well enough to write the training step.
        ConfigError: the compiler is missing.
    """
    from asap.compiler.calibration import load_calibration
    from asap.compiler.verify import verify

    hardware = ranked.study.slice
    if hardware is not None and hardware.topology is None:
        raise BadInputError(
            f"compiling for {hardware.chip.title} needs the chip itself", where="--verify",
            hint="`asap verify` shows how XLA's CPU pipeline shards a plan",
        )  # fmt: skip
    experiment = ranked.study.experiment

    def compile_plans(plans: Sequence[Plan]) -> Sequence[Verification]:
        return verify(experiment, plans, options, progress)

    return compile_candidates(ranked, compile_plans, load_calibration().log_half_width)


def compile_candidates(ranked: RankedCandidates, verify: Verify, log_half_width: float) -> RankedCandidates:
    """Compile the incumbent and the best three, replace what does not fit, and update time and memory.

    Candidates that were compiled and fit come first, in the order of their updated scores.

    Args:
        ranked: all candidates of a study.
        verify: compiles plans.
        log_half_width: half the width of the 90 % interval of a compiled step time, in ``ln``.
    """
    incumbent = ranked.incumbent
    found: dict[Plan, Verification] = {}
    baseline: Verification | None = None
    candidates, batch = ranked.candidates, ranked.study.experiment.workload.global_batch
    for _ in range(ROUNDS):
        chosen = [candidate.plan for candidate in choose(candidates, ranked.study.plan)]
        wanted = [plan for plan in ([incumbent.plan] if incumbent else []) + chosen if plan not in found]
        if not wanted:
            break
        found.update(zip(wanted, verify(wanted), strict=True))
        baseline = found.get(incumbent.plan) if incumbent else None
        sized = [_set_memory(candidate, found) for candidate in ranked.candidates]
        candidates = _ordered([_set_time(c, found.get(c.plan), baseline, log_half_width, batch) for c in sized], found)
    if incumbent and baseline:
        incumbent = _set_compiled_memory(incumbent, baseline)
    return replace(ranked, incumbent=incumbent, candidates=candidates)


def verdicts(ranked: RankedCandidates) -> dict[str, str]:
    """The compiler's verdict on each plan that was compiled."""
    predictions = [candidate.prediction for candidate in ranked.candidates]
    predictions += [ranked.incumbent] if ranked.incumbent else []
    return {str(prediction.plan): said for prediction in predictions if (said := prediction.compiled)}


def _ordered(candidates: list[Candidate], found: dict[Plan, Verification]) -> list[Candidate]:
    def key(candidate: Candidate) -> tuple[bool, bool, float, str]:
        verified = candidate.plan in found and found[candidate.plan].fits is True
        return not fits(candidate.prediction), not verified, -candidate.score, str(candidate.plan)

    return sorted(candidates, key=key)


def _set_memory(candidate: Candidate, found: dict[Plan, Verification]) -> Candidate:
    if (verification := found.get(candidate.plan)) is None:
        return candidate
    return replace(candidate, prediction=_set_compiled_memory(candidate.prediction, verification))


def _set_compiled_memory(prediction: Prediction, found: Verification) -> Prediction:
    """The prediction with the compiler's HBM in place of ours, and its verdict as a note."""
    note = f"{COMPILED}{found.program}: {found.verdict}"
    if note in prediction.notes:
        return prediction
    changed: dict[str, object] = {"notes": (*prediction.notes, note)}
    size = found.memory.hbm_peak if found.memory else found.needed_bytes
    if found.fits is not None and size is not None:
        source = f"memory analysis of libtpu: {found.program}"
        total = Quantity(value=size, unit="bytes", provenance=Provenance.COMPILED, source=source)
        changed["memory"] = MemoryPrediction(total=total, capacity_bytes=found.capacity_bytes, fits=found.fits)
    elif found.fits is not None and prediction.memory is not None:
        changed["memory"] = prediction.memory.model_copy(update={"fits": found.fits, "probability_fits": None})
    return prediction.model_copy(update=changed)


def _set_time(
    candidate: Candidate,
    found: Verification | None,
    baseline: Verification | None,
    log_half_width: float,
    batch: int | None,
) -> Candidate:
    """The candidate with its gain averaged with the compiled one, and its score changed by as much."""
    relative = candidate.prediction.relative_step_time
    if found is None or baseline is None or not found.step_time or not baseline.step_time or relative is None:
        return candidate
    if relative.low is None or relative.high is None or found.effort != baseline.effort:
        return candidate
    larger = (found.plan.global_batch or batch) / batch if batch else 1.0
    compiled = math.log(found.step_time.value / baseline.step_time.value / larger)
    modelled = (math.log(relative.value), math.log(relative.high / relative.low) / 2)
    middle, half = combine(modelled, (compiled, log_half_width * math.sqrt(2)))
    weighed = Quantity(
        value=math.exp(middle), low=math.exp(middle - half), high=math.exp(middle + half), unit=relative.unit,
        provenance=Provenance.COMPILED, source=SOURCE,
    )  # fmt: skip
    step = candidate.prediction.step_time
    moved = step and step.model_copy(update=_scaled(step, relative, weighed))
    prediction = candidate.prediction.model_copy(update={"relative_step_time": weighed, "step_time": moved})
    return set_prediction(candidate, prediction)


def combine(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Mean and half-width of two estimates of one quantity, weighted by the inverse squares of their half-widths.

    Where they disagree the half-width grows by the Birge ratio (Review of Particle Physics,
    "Introduction", section 5.2.2: https://pdg.lbl.gov/2024/reviews/rpp2024-rev-rpp-intro.pdf).
    """
    (a, wide_a), (b, wide_b) = first, second
    if wide_a <= 0 or wide_b <= 0:
        return first if wide_a <= wide_b else second
    weight_a, weight_b = wide_a**-2, wide_b**-2
    middle = (weight_a * a + weight_b * b) / (weight_a + weight_b)
    birge = abs(a - b) / math.hypot(wide_a, wide_b)
    return middle, max(1.0, birge) / math.sqrt(weight_a + weight_b)


def _scaled(step: Quantity, before: Quantity, after: Quantity) -> dict[str, object]:
    """The step time and its interval, changed as the relative step time is."""
    ratio = after.value / before.value
    low = step.low and step.value * ratio * (after.low or after.value) / after.value
    high = step.high and step.value * ratio * (after.high or after.value) / after.value
    return {"value": step.value * ratio, "low": low, "high": high, "provenance": Provenance.COMPILED, "source": SOURCE}
