"""The situation that a run is in, which decides what advice it needs."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import best_of, format_bytes, format_odds, format_percent, none_of
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.experiments.remarks import unmodelled
from asap.prediction.prediction import FitVerdict, MemoryPrediction, Prediction
from asap.proposals.selection.candidate import LIKELY
from asap.proposals.trials import OfferedTrial
from asap.study.start import is_start
from asap.study.study import Study

SituationName = Literal[
    "does_not_fit", "may_not_fit", "spare_memory", "improvable", "well_set", "near_limit", "no_profile",
    "no_architecture", "no_plan", "unknown",
]  # fmt: skip
TOO_TIGHT: dict[SituationName, FitVerdict] = {"does_not_fit": "does not fit", "may_not_fit": "may not fit"}
"""Situations in which what runs needs too much HBM, in words."""
SPARE = 0.25
"""Share of HBM from which on it is said to be to spare. Judgement: what is printed."""
_LARGEST = 2  # parts of HBM that are named; judgement: what is printed
_WELL_SET = "Well set: "


class Situation(BaseModel):
    """What a run's situation is, and the sentence that says so."""

    model_config = ConfigDict(frozen=True)

    name: SituationName = Field(description="what decides the advice")
    also: tuple[SituationName, ...] = Field(default=(), description="what holds besides")
    statement: str


def situation_of(
    study: Study,
    incumbent: Prediction | None,
    best: Prediction | None,
    considered: int,
    trial: OfferedTrial | None = None,
) -> Situation:
    """The situation of a run.

    Args:
        study: the run.
        incumbent: the prediction of the plan that runs.
        best: the prediction of the first proposal.
        considered: configurations that were evaluated.
        trial: the most promising setting beside every plan.
    """
    found = _state_fit_odds(_situation(study, incumbent, best, considered, trial), incumbent, study)
    if incumbent is None or not is_start(study.experiment):
        return found
    return found.model_copy(update={"statement": f"{_START} {found.statement}"})


def _state_fit_odds(found: Situation, incumbent: Prediction | None, study: Study) -> Situation:
    """The situation with how likely what runs is to fit, where that is open; what may die is not well set."""
    memory = incumbent.memory if incumbent is not None else None
    odds = memory.probability_fits if memory is not None else None
    if memory is None or not memory.fits or odds is None or odds >= LIKELY:
        return found
    held = f"{format_bytes(memory.total.value)} of {format_bytes(memory.capacity_bytes)} HBM"
    risk = f"it is {format_odds(odds)} likely to fit, with {held} (modelled).{_uneven(study)}"
    name: SituationName = "near_limit" if found.name == "well_set" else found.name
    statement = found.statement.removeprefix(_WELL_SET)
    return found.model_copy(
        update={"name": name, "statement": f"Near the limit of HBM: {risk} {statement[0].upper()}{statement[1:]}"}
    )


def _uneven(study: Study) -> str:
    """What is taken for granted of experts on several devices, which get as many tokens as their router sends."""
    model, plan = study.experiment.model, study.plan
    if model is None or not model.is_moe or plan is None or plan.degree("expert") == 1:
        return ""
    if study.experiment.workload.capacity_factor is not None:
        return ""
    return " That is of tokens spread evenly over the experts: none are dropped, so a busier device holds more."


def _situation(
    study: Study, incumbent: Prediction | None, best: Prediction | None, considered: int, trial: OfferedTrial | None
) -> Situation:
    also: list[SituationName] = ["no_profile"] if study.profile is None else []
    if incumbent is None:
        if study.plan is None and best is None and considered:
            none = f"The plan that runs is not known, and none of {considered:,} plans is predicted to fit into HBM."
            return Situation(name="no_plan", also=tuple(also), statement=none)
        name: SituationName = "no_plan" if study.plan is None and best is not None else "unknown"
        return Situation(name=name, also=tuple(also), statement=_NOTHING[name])
    memory = incumbent.memory
    if memory is not None and not memory.fits:
        tight: SituationName = "may_not_fit" if memory.verdict == "may not fit" else "does_not_fit"
        less = ", ".join(unmodelled(study.experiment, "less HBM"))
        beside = f" What the prediction does not use likely takes less: {less}." if less else ""
        return Situation(name=tight, also=tuple(also), statement=_too_much(memory) + beside)
    if incumbent.method == "profile_ratios":
        return Situation(name="no_architecture", also=tuple(also), statement=_NOTHING["no_architecture"])
    if memory is not None and 1 - memory.total.value / memory.capacity_bytes >= SPARE:
        also.insert(0, "spare_memory")
    gain = _gain(best) if best is not None else 0.0
    if gain < STEP_TIME_VARIATION and trial is not None and trial.saves_time:
        return Situation(name="improvable", also=tuple(also), statement=_improvable_beside(considered, trial))
    if gain < STEP_TIME_VARIATION:
        return Situation(name="well_set", also=tuple(also), statement=_well_set(considered, gain))
    better = f"{best_of(considered, OTHER).capitalize()} should take {format_percent(gain)} less time"
    held = best.memory.total.value if best is not None and best.memory is not None else 0.0
    if also[:1] == ["spare_memory"] and memory is not None and held > memory.total.value:
        room = f"{format_bytes(memory.capacity_bytes - memory.total.value)} of HBM are free"
        statement = f"{room}, and time can be bought with them. {better}."
        return Situation(name="spare_memory", also=tuple(also[1:]), statement=statement)
    return Situation(name="improvable", also=tuple(also), statement=f"{better}.")


OTHER = "other configuration"
_START = "Nothing runs yet: the start is assumed."
_NOTHING: dict[str, str] = {
    "no_plan": "The plan that runs is not known, so plans are compared with each other only.",
    "unknown": "Too little is known of the run to predict any plan.",
    "no_architecture": "The architecture is not known: gains are ratios of what the profile shows, HBM is not"
    " predicted, and plans that communicate what was not measured are left out.",
}


def _too_much(memory: MemoryPrediction) -> str:
    over = memory.total.value - memory.capacity_bytes
    largest = sorted(memory.parts, key=lambda part: -part.size_bytes)[:_LARGEST]
    parts = " and ".join(f"{part.name} {format_bytes(part.size_bytes)}" for part in largest)
    need = f"{format_bytes(memory.total.value)} of {format_bytes(memory.capacity_bytes)} HBM"
    mostly = f"; most of it is {parts}" if parts else ""
    odds = f", {format_odds(memory.probability_fits)} likely to fit" if memory.probability_fits else ""
    kind = memory.total.provenance.value
    if over <= 0 and not odds:
        return f"It does not fit: it died out of memory{mostly} ({kind})."
    if over <= 0 or memory.verdict == "may not fit":
        return f"It may not fit: with its margin it needs {need}{mostly} ({kind}{odds}). {memory.unsaid}".strip()
    return f"It does not fit: it needs {need}, {format_bytes(over)} too much{mostly} ({kind})."


def _well_set(considered: int, gain: float) -> str:
    least = f"{format_percent(STEP_TIME_VARIATION, 0)} by which undisturbed steps vary"
    if gain > 0:
        found = f"{best_of(considered, OTHER)} gains {format_percent(gain)}"
        return f"{_WELL_SET}{found}, less than the {least}."
    return f"{_WELL_SET}{none_of(considered, OTHER)} expected to gain more than the {least}."


def _improvable_beside(considered: int, trial: OfferedTrial) -> str:
    return (
        f"Of plans, {none_of(considered, OTHER)} expected to gain more than steps vary by, but a setting is modelled"
        f" to save {format_percent(trial.gain or 0.0, 0)}: {trial.title}."
    )


def _gain(best: Prediction) -> float:
    relative = best.relative_step_time
    return 1 - relative.value if relative else 0.0
