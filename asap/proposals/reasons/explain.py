"""Reasons, expected impact, trade-offs and confidence of a proposal, written from the engine's facts."""

import math
from dataclasses import replace
from functools import cache
from statistics import NormalDist

from asap.core.text import plain
from asap.core.units import Provenance, Quantity, counted, format_bytes, format_percent, format_seconds, significant
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.evidence.step_belief import Z_90
from asap.history import precedent_prior
from asap.knowledge import Note
from asap.knowledge.notes.corpus import bundled_notes
from asap.levers.lever import Lever
from asap.levers.table import changed_levers
from asap.models import Workload
from asap.plans import AXES, Plan
from asap.plans.degrees import field_of, micro_batch
from asap.plans.plan import OF_WORKLOAD
from asap.plans.torus import split_axes
from asap.plans.validity import Degrees
from asap.prediction.prediction import Prediction
from asap.prediction.profile_ratios import doublings
from asap.proposals.proposal import ChangedSetting, Citation, Confidence, Impact
from asap.proposals.reasons.modelled_step import time_by_resource
from asap.proposals.selection.candidate import SURE_TO_FIT, fit_odds
from asap.proposals.selection.precedents import LEAST_WEIGHT, SIMILAR_RUNS, precedent_sentence, similar_runs
from asap.proposals.selection.strategy import NAMES, PlanChange, changes
from asap.proposals.trials import UNCHANGED
from asap.stacks.launchers import contract_of
from asap.study.start import is_start
from asap.study.study import Study

_MOVED = 0.005
"""Share of a step, and of HBM, from which on a part that changes is named. Judgement: what is printed."""
_UNEXPLAINED = "what was measured and the model does not explain"


def reasons(study: Study, prediction: Prediction, incumbent: Prediction | None, main: str = "") -> tuple[str, ...]:
    """Why this plan: what it saves by part of the step, then change by change, the main strategy first."""
    saved = _listed("saves", differences(incumbent, prediction), -1)
    return (*saved, *(f"{change}: {change.principle.reason}." for change in _moved(study, prediction.plan, main)))


def _listed(verb: str, moved: dict[str, Quantity], sign: int) -> tuple[str, ...]:
    sizes = ((name, abs(by.value), by.unit) for name, by in moved.items() if by.value * sign > 0)
    named = [f"{format_seconds(much) if unit == 's' else format_bytes(much)} of {name}" for name, much, unit in sizes]
    return (f"{verb} {', '.join(named)} (modelled).",) if named else ()


def differences(before: Prediction | None, after: Prediction) -> dict[str, Quantity]:
    """What each part of a step takes more or less, for as many tokens, the largest first, then HBM; small ones are left
    out. Empty where one of the two has no step time."""
    if before is None or before.step_time is None or after.step_time is None:
        return {}
    total, relative = before.step_time.value, after.relative_step_time
    scale = before.scale / after.scale * (relative.value * total / after.step_time.value if relative else 1.0)
    was, becomes = time_by_resource(before), time_by_resource(after)
    moved = {name: becomes.get(name, 0.0) * scale - was.get(name, 0.0) for name in was | becomes}
    if relative is not None and after.method == "anchored_architecture":
        moved[_UNEXPLAINED] = (relative.value - 1) * total - sum(moved.values())
    found = {
        name: Quantity(value=by, unit="s", provenance=Provenance.MODELLED, source=after.method)
        for name, by in sorted(moved.items(), key=lambda item: -abs(item[1]))
        if abs(by) > (STEP_TIME_VARIATION if name == _UNEXPLAINED else _MOVED) * total
    }
    if before.memory and after.memory:
        held = after.memory.total.value - before.memory.total.value
        if abs(held) > _MOVED * after.memory.capacity_bytes:
            found["HBM"] = after.memory.total.model_copy(update={"value": held, "low": None, "high": None})
    return found


def _moved(study: Study, plan: Plan, main: str) -> tuple[PlanChange, ...]:
    """The changes of a plan, in the words of the table of proposals."""
    workload = study.experiment.workload
    now = {one.name: one.before for one in changed_settings(plan, study.plan, workload)} if study.plan else {}
    found = changes(plan, study.plan, main, workload.experts_over)
    return tuple(
        replace(one, before=now.get(one.name, one.before)) if isinstance(one.before, str) else one for one in found
    )


def larger_batch(study: Study, prediction: Prediction, incumbent: Prediction | None) -> tuple[str, ...]:
    """Tokens a second and steps to the same tokens, where the plan has another batch."""
    before, after = study.experiment.workload.global_batch, prediction.plan.global_batch
    tokens, now = prediction.tokens_per_second, incumbent.tokens_per_second if incumbent else None
    if not before or not after or tokens is None or now is None:
        return ()
    rates = f"{significant(tokens.value)} tokens/s instead of {significant(now.value)}"
    return (f"{rates} (modelled); the same tokens take {format_percent(before / after)} of the steps.",)


def trade_offs(study: Study, prediction: Prediction, incumbent: Prediction | None, main: str = "") -> tuple[str, ...]:
    """What the plan costs or risks: what it adds by part of the step, then change by change, main strategy first."""
    plan = prediction.plan
    costs = [*_listed("adds", differences(incumbent, prediction), 1)]
    costs += [f"{change}: {change.principle.trade_off}." for change in _moved(study, plan, main)]
    topology = study.slice.topology if study.slice else None
    if topology and study.plan is not None:
        split = sorted(split_axes(plan.ici, topology) - split_axes(study.plan.ici, topology))
        if split:
            shape = "x".join(map(str, topology))
            costs.append(f"On the {shape} torus, these axes now share physical axes: {' and '.join(split)}.")
    return tuple(costs)


def impacts(study: Study, prediction: Prediction) -> tuple[Impact, ...]:
    """Expected change of step time, duty cycle where it was measured, communication and HBM."""
    return (_step_time(prediction), *_duty_cycle(study), _communication(study, prediction), _hbm(prediction))


def confidence(study: Study, prediction: Prediction, citations: tuple[Citation, ...]) -> Confidence:
    """Probability of being faster, from the interval, and what that interval is based on."""
    basis = [f"interval: {prediction.relative_step_time.source}"] if prediction.relative_step_time else []
    if moved := doublings(prediction.plan, study.plan) if study.plan is not None else 0:
        baseline = "the start" if is_start(study.experiment) else "the plan that runs"
        basis.append(f"its mesh differs from that of {baseline} by {counted(moved, 'factor')} of two")
    precedents = [citation.title for citation in citations if citation.kind == "precedent"]
    basis += [f"precedent: {name}" for name in precedents] or ["no precedent is similar enough"]
    basis += prediction.notes
    return Confidence(faster=_faster(prediction.relative_step_time), basis=tuple(basis))


def _faster(relative: Quantity | None) -> Quantity | None:
    if relative is None or relative.low is None or relative.high is None or relative.low >= relative.high:
        return None
    deviation = math.log(relative.high / relative.low) / (2 * Z_90)
    return Quantity(
        value=NormalDist(math.log(relative.value), deviation).cdf(0.0), unit="fraction", provenance=Provenance.MODELLED,
        source="log-normal distribution over the 90 % interval of the relative step time",
    )  # fmt: skip


def _step_time(prediction: Prediction) -> Impact:
    relative = prediction.relative_step_time
    if relative is None:
        statement = "cannot be compared, as the plan that runs is not known"
        return Impact(name="step time", statement=statement, quantity=prediction.step_time)
    change = relative.value - 1
    statement = f"{format_percent(abs(change))} {'longer' if change > 0 else 'shorter'}"
    statement = "about the same" if abs(change) < UNCHANGED else statement
    return Impact(name="step time", statement=statement, quantity=relative)


def _duty_cycle(study: Study) -> tuple[Impact, ...]:
    duty = study.profile.kpis.duty_cycle if study.profile else None
    if duty is None:
        return ()
    return (Impact(name="duty cycle", statement=f"stays near {format_percent(duty)}: sharding changes no host work"),)


def _communication(study: Study, prediction: Prediction) -> Impact:
    after = prediction.communication
    before = study.profile.kpis.communication if study.profile else None
    if after is None:
        return Impact(name="communication", statement="cannot be predicted from what is known")
    added = [NAMES[c.axis] for c in changes(prediction.plan, study.plan or Plan()) if c.before == 1]
    start = f"{format_percent(before)} → " if before is not None else ""
    extra = f", plus what {' and '.join(added)} will add" if added and prediction.method == "profile_ratios" else ""
    statement = f"{start}{format_percent(after.value)} of the step{extra}"
    return Impact(name="communication", statement=statement, quantity=after)


def _hbm(prediction: Prediction) -> Impact:
    memory = prediction.memory
    if memory is None:
        return Impact(name="HBM", statement="cannot be predicted without the architecture")
    odds = fit_odds(prediction) if memory.fits else 1.0
    doubt = f", {format_percent(odds, 0)} likely" if odds < SURE_TO_FIT else ""
    statement = f"{format_bytes(memory.total.value)} of {format_bytes(memory.capacity_bytes)}: {memory.verdict}{doubt}"
    return Impact(name="HBM", statement=statement, quantity=memory.total)


def changed_settings(plan: Plan, incumbent: Plan, workload: Workload) -> tuple[ChangedSetting, ...]:
    """Axes in the order of :data:`asap.plans.AXES`, then levers; before is what plan or workload say. Where experts lie
    over other axes as well, ``expert`` is all devices that they lie over, as launchers count."""
    meshes = (("", plan.ici, incumbent.ici), ("dcn.", plan.dcn, incumbent.dcn))
    settings: list[tuple[str, object, object]] = [
        (f"{prefix}{axis}", getattr(before, axis), getattr(after, axis))
        for prefix, after, before in meshes
        for axis in AXES
        if not (workload.experts_over and axis == "expert")
    ]
    pair, levers = (incumbent, plan), changed_levers(plan, incumbent)
    if over := workload.experts_over:
        settings.append(("expert", *(Degrees.of(each, over).expert_devices for each in pair)))
    settings += [(one.name, _before(one, incumbent, workload), one.read(plan)) for one in levers]
    if contract_of(workload.framework).sets_micro_batch and all(one.name != "microbatches" for one in levers):
        was, now = (micro_batch(each, each.global_batch or workload.global_batch) for each in pair)
        settings += [("micro_batch", was, now)] if was and now else []
    changed = ((name, str(was), str(now)) for name, was, now in settings if was != now)
    return tuple(ChangedSetting(name=name, before=was, after=now) for name, was, now in changed)


def _before(lever: Lever, incumbent: Plan, workload: Workload) -> str:
    if lever.name not in OF_WORKLOAD or getattr(incumbent, lever.name) is not None:
        return lever.read(incumbent)
    said = getattr(workload, field_of(lever.name))
    return lever.read(incumbent) if said is None else str(said).lower()


def cite(study: Study, plan: Plan) -> tuple[Citation, ...]:
    """A precedent for or against a plan if one is similar enough, and a principle for each of its changes."""
    return (*_precedent(study, plan), *_principles(study, plan))


def _principles(study: Study, plan: Plan) -> tuple[Citation, ...]:
    found: dict[str, Citation] = {}
    for change in _moved(study, plan, ""):
        note = _notes()[change.principle.note]
        supports = f"{change}: {change.principle.claimed}."
        citation = Citation(kind="principle", id=note.id, title=note.title, url=note.citation.url, supports=supports)
        found.setdefault(note.id, citation)
    return tuple(found.values())


@cache
def _notes() -> dict[str, Note]:
    """The bundled notes by ID, read once."""
    return {note.id: note for note in bundled_notes()}


def _precedent(study: Study, plan: Plan) -> tuple[Citation, ...]:
    current = study.plan
    if current is None:
        return ()
    weighed = ((precedent_prior(hit, current, plan), hit) for hit in similar_runs(study, SIMILAR_RUNS))
    weight, hit = max(weighed, key=lambda pair: abs(pair[0]), default=(0.0, None))
    if hit is None or abs(weight) < LEAST_WEIGHT:
        return ()
    record, title = hit.record, plain(hit.record.title)
    says = precedent_sentence(hit, current, plan)
    supports = f"{says} It counts in the order with a weight of {significant(weight, 2)}."
    return (
        Citation(
            kind="precedent", id=record.id, title=title, url=record.source.url, supports=supports, against=weight < 0
        ),
    )
