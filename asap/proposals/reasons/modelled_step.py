"""The step of a run without a profile, by the model: what it waits for, in one word and by part."""

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import format_percent
from asap.models import count_parameters
from asap.prediction.prediction import OPTIMIZER_ON_CPU, Prediction, TimePart
from asap.study.study import Study

_RESOURCES = {
    "compute": "compute",
    "hbm": "HBM traffic",
    "optimizer": "HBM traffic",
    OPTIMIZER_ON_CPU: OPTIMIZER_ON_CPU,
    "pipeline bubble": "pipeline bubble",
    "host transfers": "host transfers",
    "host": "host",
}
"""What each part of a prediction waits for; every other part is a collective."""
_SHOWN = 0.02  # share of a step from which on a resource is named; judgement: what is printed


class ModelledShare(BaseModel):
    """Time that a step waits for one resource, as a fraction of it. Modelled."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(
        description="compute, HBM traffic, pipeline bubble, host transfers, host, or a collective and its axis"
    )
    fraction: float


class ModelledStep(BaseModel):
    """What the model says of a run that was not measured."""

    model_config = ConfigDict(frozen=True)

    bottleneck: str = Field(description="compute, HBM traffic, communication, pipeline bubble, host, …")
    shares: tuple[ModelledShare, ...] = Field(description="largest first")
    parameters: int | None = Field(description="of the model")
    tokens_per_second_per_chip: float | None
    statement: str


def modelled_step(study: Study, incumbent: Prediction | None) -> ModelledStep | None:
    """The step by the model; ``None`` where a profile shows it, or the architecture is not known."""
    if incumbent is None or incumbent.step_time is None or incumbent.method == "profile_ratios":
        return None
    if study.profile is not None and study.profile.operations:
        return None
    total, model = incumbent.step_time.value, study.experiment.model
    shares = {name: seconds / total for name, seconds in time_by_resource(incumbent).items()}
    groups = [(_RESOURCES.get(part.name, "communication"), part.exposed_s) for part in incumbent.parts]
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    bottleneck = max(dict(groups), key=lambda group: sum(seconds for name, seconds in groups if name == group))
    shown = ", ".join(f"{name} {format_percent(share, 0)}" for name, share in ordered if share >= _SHOWN)
    chips, tokens = study.slice.chips if study.slice else None, incumbent.tokens_per_second
    return ModelledStep(
        bottleneck=bottleneck,
        shares=tuple(ModelledShare(name=name, fraction=share) for name, share in ordered),
        parameters=count_parameters(model).total if model and not model.missing() else None,
        tokens_per_second_per_chip=tokens.value / chips if tokens and chips else None,
        statement=f"Modelled, not measured: the step waits most for {bottleneck} ({shown}).{_own_runs(incumbent)}",
    )


def time_by_resource(prediction: Prediction) -> dict[str, float]:
    """Seconds of a step that nothing hides, by what it waits for: a resource, or a collective and its axis."""
    found: dict[str, float] = {}
    for part in prediction.parts:
        found[_name(part)] = found.get(_name(part), 0.0) + part.exposed_s
    return found


def _name(part: TimePart) -> str:
    if part.name in _RESOURCES:
        return _RESOURCES[part.name]
    return f"{part.name} of {part.axis}" if part.axis and "slices" not in part.name else part.name


def _own_runs(incumbent: Prediction) -> str:
    note = incumbent.own_runs
    return f" {note[0].upper()}{note[1:]}." if note else ""
