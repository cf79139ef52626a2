"""Ideas from the history: changes beside the plan that won in runs like this one, each with what it can save at most.

A family of changes (``fused cross-entropy``) is weighed by the records in which it was measured, failures too: each
counts by how alike its chip, model and sequence are. A run in which a change has nothing to touch, or which has it
already, is not told of it.
"""

import math
import tomllib
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import CHANGE, Provenance, Quantity, counted, format_change
from asap.flags.environment import is_any_set
from asap.flags.situation import Situation as Causes
from asap.hardware import Chip
from asap.history.families import Family, ranked
from asap.history.files import load_records
from asap.history.record import ChangeKind, Outcome, Part
from asap.levers.table import TRIALS
from asap.models import Workload, count_parameters
from asap.plans import Plan
from asap.plans.axes import AXES, Axis
from asap.prediction.prediction import Prediction
from asap.proposals.selection.search import run_of
from asap.stacks.launchers import Stack
from asap.study.study import Study


class Known(BaseModel):
    """What ``ideas.toml`` says of a family."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    compiler: Literal["torch", "xla"] | None = None
    stacks: tuple[Stack, ...] | None = None
    needs: str | None = None
    units: str | None = None
    where: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    workload: dict[str, tuple[str, ...]] = {}
    decides: str | None = None
    trial: str | None = None
    searched: bool = False


_TABLE = Path(__file__).with_name("ideas.toml").read_text(encoding="utf-8")
FAMILIES = {name: Known.model_validate(row) for name, row in tomllib.loads(_TABLE).items()}


def known_of(family: str) -> Known:
    """What the table says of a family; nothing of one that it does not have."""
    return FAMILIES.get(family, Known())


def decisions(families: Iterable[Family]) -> list[tuple[Family, ...]]:
    """Families that exclude each other together, each group and its families in their order."""
    found: dict[str, tuple[Family, ...]] = {}
    for one in families:
        found[decision_of(one.name)] = (*found.get(decision_of(one.name), ()), one)
    return list(found.values())


def decision_of(family: str) -> str:
    """What a family decides: the same for families of which a run takes one."""
    return known_of(family).decides or family.partition(",")[0]


def untried(families: Sequence[Family]) -> list[str]:
    """Families of the table that decide the same as those of a group, and that no run among its records tried."""
    names = {one.name for one in families}
    return [one for one in FAMILIES if one not in names and decision_of(one) == decision_of(families[0].name)]


def has_units(chip: Chip | None, known: Known) -> bool:
    """Whether a chip has what a family uses: SparseCores, or float8 that is faster than bf16."""
    if chip is None or known.units is None:
        return True
    rates = {**chip.peak_flops, "sparse_cores": math.inf if chip.sparse_cores else 0.0}
    return rates.get(known.units, 0.0) > rates.get("bf16", 0.0)


class Standing(StrEnum):
    """What the engine can say of a change before it is run."""

    PREDICTED = "predicted"
    BOUNDED = "bounded"
    MEASURE = "must be measured"


class Idea(BaseModel):
    """One change to try beside the proposals."""

    model_config = ConfigDict(frozen=True)

    title: str
    kind: ChangeKind
    change: str = Field(description="in the words of the launcher, compiler or code")
    hypothesis: str = Field(default="", description="which part of the step it shortens, and why")
    refuted_by: str = Field(default="", description="the observation that would refute it")
    how: str = Field(default="", description="the cheapest test")
    standing: Standing
    bound: Quantity | None = Field(default=None, description="share of the step that it touches: more it cannot save")
    effect: Quantity | None = Field(default=None, description="change of the step time that was measured elsewhere")
    runs: int = Field(default=0, description="runs elsewhere that measured it")
    precedents: tuple[str, ...] = Field(default=(), description="IDs of records and notes")
    by: Literal["engine", "model"] = "engine"


MOST = 3  # ideas that are shown; judgement: how many
LEAST_GAIN = 0.003
"""Of ln(step time), after doubt: less is within the noise of repeated runs of the records. Judgement: which ideas are
shown."""
_NETWORK = ("collective", "reduce", "gather", "all-to-all", "permute", "send", "broadcast")
_PARTS: dict[Part, tuple[str, ...]] = {
    Part.COLLECTIVES: _NETWORK, Part.OPTIMIZER: ("optimizer",), Part.INPUT: ("host",)
}  # fmt: skip
"""Parts of a predicted step that hold a part, by words of their names: an upper bound. The others are kinds of
computation, whose shares a prediction holds."""


def engine_ideas(study: Study, incumbent: Prediction | None, named: Collection[str] = ()) -> tuple[Idea, ...]:
    """Ideas whose gain elsewhere, after doubt and no more than their part of this step, is largest; or those named."""
    model, workload = study.experiment.model, study.experiment.workload
    size = count_parameters(model).total if model and not model.missing() else None
    chip = study.chip.name if study.chip else None
    found, run = [], run_of(study)
    judged = {one.name for one in TRIALS if study.experiment.hyperparameters and study.plan and one.settings(run)}
    modelled = incumbent is not None and incumbent.step_time is not None and incumbent.memory is not None

    def applies(name: str) -> bool:
        known = known_of(name)
        if named or (study.plan is None and known.needs):
            return name in named
        return known.trial not in judged and not (known.searched and modelled) and not against(study, name)

    families = [one for one in ranked(load_records(), chip, size, workload.sequence_length) if applies(one.name)]
    for best, *others in decisions(families):
        standing, bound = bounded(incumbent, best.records[0].touches)
        most_saved = -math.log(max(1 - bound.value, 1e-9)) if bound else math.inf
        if (gain := min(best.gain, most_saved)) > LEAST_GAIN or named:
            beside = [one for one in untried((best, *others)) if applies(one)]
            found.append((gain, _idea(best, others, beside, standing, bound)))
    return tuple(idea for _, idea in sorted(found, key=lambda one: -one[0])[:MOST])


def bounded(incumbent: Prediction | None, touches: Part | None) -> tuple[Standing, Quantity | None]:
    """What can be said of a change that touches a part of the step: the share of the step that this part is."""
    parts = incumbent.parts if incumbent and incumbent.step_time else ()
    if incumbent is None or touches is None or not parts or touches not in {*_PARTS, *incumbent.shares}:
        return Standing.MEASURE, None
    held = sum(one.exposed_s for one in parts if any(name in one.name for name in _PARTS.get(touches, ())))
    share = incumbent.shares.get(touches, held / (sum(one.exposed_s for one in parts) or 1.0))
    source = f"predicted share of {touches.value} in the step that runs"
    return Standing.BOUNDED, Quantity(value=share, unit="fraction", provenance=Provenance.MODELLED, source=source)


def against(study: Study, family: str) -> str | None:
    """Why a change is none for a run, as far as is known."""
    known, one, run = known_of(family), study.experiment, run_of(study)
    if known.compiler == ("torch" if run.xla else "xla") or not has_units(study.chip, known):
        return "not for this compiler or chip"
    if one.workload.framework and known.stacks is not None and run.stack not in known.stacks:
        return "not for this stack"
    if known.where and one.hyperparameters and not is_any_set(known.where, one.hyperparameters, one.environment):
        return "in use by default"
    if is_any_set(known.set, one.hyperparameters, one.environment):
        return "in use"
    has = Causes(study.plan, study.chip, None, one.model).needs | {
        "gated" if one.model and one.model.gated_mlp else "ungated",
        "adapters" if one.workload.adapter_rank else "all weights",
    }
    lacks = one.model is not None and known.needs not in (None, *AXES, *has)
    moot = lacks or is_moot(study.plan, one.workload, family)
    return "in use, or nothing in this run that it touches" if moot else None


def is_moot(plan: Plan | None, workload: Workload, family: str) -> bool:
    """Whether a plan and a workload are known to have a change already, or no axis that it could touch."""
    known = known_of(family)
    if plan is not None and known.needs in AXES and plan.degree(cast(Axis, known.needs)) == 1:
        return True
    if plan is not None and family.startswith("interleaved") and plan.pipeline_repeats > 1:
        return True
    held = {field: str(value).lower() for field, value in workload if field in known.workload and value}
    return any(word in value for field, value in held.items() for word in known.workload[field])


def _idea(
    family: Family, others: Sequence[Family], beside: Sequence[str], standing: Standing, bound: Quantity | None
) -> Idea:
    weighed = zip(family.weights, family.records, strict=True)
    _, nearest = max(weighed, key=lambda one: ((one[1].speedup or 0) > 1, one[0]))
    worse = sum(one.outcome is not Outcome.IMPROVED for one in family.records)
    known = [f"{worse} of them got no faster"] if worse else []
    known += [
        f"instead: {one.name}, {counted(len(one.records), 'run')}, "
        f"{format_change(1 + mean.value) if (mean := _effect(one)) else 'none of which fitted'}"
        for one in others
    ]
    known += [f"instead: {one}, of which no run on such a chip is on record" for one in beside]
    return Idea(
        title=family.name,
        kind=nearest.kind or ChangeKind.PATCH,
        change=nearest.other_changes[0].partition(": ")[2],
        hypothesis=f"{'; '.join(known)}." if known else "",
        refuted_by="the median of ten steady steps is no shorter than that of what runs now",
        how="the run as it is with this one change, for thirty steps",
        standing=standing,
        bound=bound,
        effect=_effect(family),
        runs=len(family.records),
        precedents=tuple(one.id for one in family.records[:3]),
    )


def _effect(family: Family) -> Quantity | None:
    known = [(w, 1 / one.speedup - 1) for w, one in zip(family.weights, family.records, strict=True) if one.speedup]
    if not known:
        return None
    changes = [change for _, change in known]
    mean = sum(weight * change for weight, change in known) / (sum(weight for weight, _ in known) or 1.0)
    source = f"{counted(len(changes), 'published run')}; from the least to the most"
    return Quantity(
        value=mean, unit=CHANGE, provenance=Provenance.PRECEDENT, source=source,
        low=min(changes) if len(changes) > 1 else None, high=max(changes) if len(changes) > 1 else None,
    )  # fmt: skip
