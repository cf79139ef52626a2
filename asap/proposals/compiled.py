"""What the TPU compiler says of the best candidates, taken into their memory, their intervals and their order."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from asap.compiler.choice import Choice
from asap.compiler.verdict import Verification
from asap.core.errors import BadInputError
from asap.core.provenance import Provenance, Quantity
from asap.plans import Plan
from asap.prediction.prediction import COMPILED, MemoryPrediction, Prediction
from asap.proposals.propose import Field
from asap.proposals.ranking import Candidate, choose, expected_gain, fits

Verify = Callable[[Sequence[Plan]], Sequence[Verification]]

ROUNDS = 4
"""How often plans that do not fit are replaced; each round compiles those that are new among the three."""

SOURCE = "modelled and compiled, each weighed by its interval"


def compiled_field(field: Field, choice: Choice, progress: Callable[[str], None]) -> Field:
    """All candidates of a study, after the incumbent and the best were compiled.

    Raises:
        BadInputError: no compiler for the chip can be had without one.
        InsufficientEvidenceError: model, hardware or workload are not known well enough to write the training step.
        ConfigError: the compiler is missing.
    """
    from asap.compiler.calibration import load_calibration
    from asap.compiler.verify import verify

    hardware = field.study.slice
    if hardware is not None and hardware.topology is None:
        raise BadInputError(
            f"no compiler for {hardware.chip.title} can be had without one", where="--verify",
            hint="asap verify tells what XLA's CPU pipeline makes of a plan",
        )  # fmt: skip
    experiment = field.study.experiment

    def compile_plans(plans: Sequence[Plan]) -> Sequence[Verification]:
        return verify(experiment, plans, choice, progress)

    return compile_candidates(field, compile_plans, load_calibration().half_width)


def compile_candidates(field: Field, verify: Verify, half_width: float) -> Field:
    """Compile the incumbent and the three best; replace what does not fit; weigh time and memory anew.

    Candidates that were compiled and fit come first, in the order of what is expected of them now.

    Args:
        field: all candidates of a study.
        verify: compiles plans.
        half_width: of the 90 % interval of a compiled step time, in ``ln``.
    """
    incumbent = field.incumbent
    found: dict[Plan, Verification] = {}
    candidates = field.candidates
    for _ in range(ROUNDS):
        chosen = [candidate.plan for candidate in choose(candidates, field.study.plan)]
        wanted = [plan for plan in ([incumbent.plan] if incumbent else []) + chosen if plan not in found]
        if not wanted:
            break
        found.update(zip(wanted, verify(wanted), strict=True))
        candidates = _ordered([_with_memory(candidate, found) for candidate in candidates], found)
    baseline = found.get(incumbent.plan) if incumbent else None
    candidates = _ordered([_with_time(c, found.get(c.plan), baseline, half_width) for c in candidates], found)
    if incumbent and baseline:
        incumbent = _remembered(incumbent, baseline)
    return replace(field, incumbent=incumbent, candidates=candidates)


def verdicts(field: Field) -> dict[str, str]:
    """What the compiler said of each plan that it was asked for."""
    predictions = [candidate.prediction for candidate in field.candidates]
    predictions += [field.incumbent] if field.incumbent else []
    return {str(prediction.plan): said for prediction in predictions if (said := prediction.compiled)}


def _ordered(candidates: list[Candidate], found: dict[Plan, Verification]) -> list[Candidate]:
    def key(candidate: Candidate) -> tuple[bool, bool, float, str]:
        verified = candidate.plan in found and found[candidate.plan].fits is True
        return not fits(candidate.prediction), not verified, -candidate.score, str(candidate.plan)

    return sorted(candidates, key=key)


def _with_memory(candidate: Candidate, found: dict[Plan, Verification]) -> Candidate:
    verification = found.get(candidate.plan)
    return (
        candidate
        if verification is None
        else replace(candidate, prediction=_remembered(candidate.prediction, verification))
    )


def _remembered(prediction: Prediction, found: Verification) -> Prediction:
    """The prediction with the compiler's HBM in the place of ours, and its verdict as a note."""
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
        changed["memory"] = prediction.memory.model_copy(update={"fits": found.fits})
    return prediction.model_copy(update=changed)


def _with_time(
    candidate: Candidate, found: Verification | None, baseline: Verification | None, half_width: float
) -> Candidate:
    """The candidate with its gain drawn towards the compiled one, and its score moved by as much."""
    relative = candidate.prediction.relative_step_time
    if found is None or baseline is None or not found.step_time or not baseline.step_time or relative is None:
        return candidate
    if relative.low is None or relative.high is None or found.effort != baseline.effort:
        return candidate
    compiled = math.log(found.step_time.value / baseline.step_time.value)
    modelled = (math.log(relative.value), math.log(relative.high / relative.low) / 2)
    middle, half = weigh(modelled, (compiled, half_width * math.sqrt(2)))
    weighed = Quantity(
        value=math.exp(middle), low=math.exp(middle - half), high=math.exp(middle + half), unit=relative.unit,
        provenance=Provenance.COMPILED, source=SOURCE,
    )  # fmt: skip
    step = candidate.prediction.step_time
    moved = step and step.model_copy(update=_scaled(step, relative, weighed))
    prediction = candidate.prediction.model_copy(update={"relative_step_time": weighed, "step_time": moved})
    gained = expected_gain(prediction) - expected_gain(candidate.prediction)
    return Candidate(prediction, candidate.score + gained)


def weigh(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Mean and half-width of two estimates of one figure, each weighed by the inverse square of its half-width.

    Where they contradict each other the half-width grows by the Birge ratio (Review of Particle Physics,
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
    """A step time that follows the relative one, with its interval scaled alike."""
    ratio = after.value / before.value
    low = step.low and step.value * ratio * (after.low or after.value) / after.value
    high = step.high and step.value * ratio * (after.high or after.value) / after.value
    return {"value": step.value * ratio, "low": low, "high": high, "provenance": Provenance.COMPILED, "source": SOURCE}
