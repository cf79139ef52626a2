"""What if: the batch, the sequence, the slice or the rematerialisation were another. Nothing of it is recorded."""

import re
from collections.abc import Sequence

from asap.agents.chat.conversation import Conversation
from asap.agents.chat.reply import Draft
from asap.agents.chat.wording import expectation, line
from asap.agents.desk import Desk
from asap.core.errors import InsufficientEvidenceError
from asap.core.provenance import Quantity
from asap.core.units import significant
from asap.diagnosis.study import Study, study_of
from asap.experiments import Experiment, HardwareReference
from asap.experiments.hardware import refer_to_hardware
from asap.plans import Plan, Remat
from asap.plans.validity import violations
from asap.prediction.classes import allocator_class
from asap.prediction.expectation import expect
from asap.prediction.prediction import Prediction
from asap.proposals.policies import KNOWN
from asap.proposals.propose import Field
from asap.proposals.ranking import choose
from asap.reports import phrases

_FACTORS = {
    2.0: re.compile(r"\b(?:doubl\w+|twice|two times|twofold)\b", re.I),
    3.0: re.compile(r"\b(?:tripl\w+|three times)\b", re.I),
    4.0: re.compile(r"\b(?:quadrupl\w+|four times|fourfold)\b", re.I),
    0.5: re.compile(r"\b(?:halv\w+|half)\b", re.I),
}
_TIMES = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:x\b|×|times\b)|\bx\s*(\d+)\b", re.I)
_NUMBER = re.compile(r"(?<![\w.=-])(\d{1,9})\s*(k)?\b(?!\s*(?:%|x\b|times|ms\b|s\b|\.\d))", re.I)
_CHIP = re.compile(r"\b(v\d\w{0,2}-\d+|[ahb]\d{2,3}-\d+)\b", re.I)
_WHAT = re.compile(
    r"\b(batch\w*|gbs)\b|\b(sequences?|seq(?:uence)?[ _-]?len\w*|context(?:[ _-](?:len\w*|window))?)\b(?![ -]parallel)"
    r"|\b(slices?|pods?|chips|devices|hardware|cluster|tpus|gpus|v\d\w{0,2}-\d+)\b"
    r"|\b(remat\w*|(?:activation )?checkpoint\w*|recomput\w*)\b",
    re.I,
)
_POLICY = re.compile(rf"\b({'|'.join(Remat)})\b", re.I)
_NO_REMAT = re.compile(
    r"\b(?:no|without|turn\w* off|disabl\w+)\s+(?:\w+\s+)?(?:remat|checkpoint|recomput)|\b(?:off)\b", re.I
)


def what_if(conversation: Conversation, answer: Draft, text: str) -> None:
    """Evaluate the change that is asked for; raises InsufficientEvidenceError where the engine cannot tell."""
    match = _WHAT.search(text)
    if match is None:
        answer.say("Say what changes: the batch, the sequence, the slice, the rematerialisation, or a whole plan.")
    elif match[1]:
        _workload(conversation, answer, "global_batch", text)
    elif match[2]:
        _workload(conversation, answer, "sequence_length", text)
    elif match[3]:
        _slice(conversation, answer, text)
    else:
        _remat(conversation, answer, text)


def is_change(text: str) -> bool:
    """Whether something is named that can be changed, and by how much."""
    subject = _WHAT.search(text)
    sized = _factor(text) is not None or _NUMBER.search(text) or _CHIP.search(text)
    return subject is not None and bool(sized or subject[4])


def _workload(conversation: Conversation, answer: Draft, field: str, text: str) -> None:
    experiment, name = conversation.study.experiment, field.replace("_", " ")
    known = getattr(experiment.workload, field)
    target = _target(text, known)
    if target is None:
        asked = "Our batch is 256" if field == "global_batch" else "Our sequence length is 8192"
        answer.say(f'The {name} is not on record, so it cannot be scaled. State it: "{asked}".')
        return
    workload = experiment.workload.model_copy(update={field: target})
    study = _without_step_time(conversation.study, experiment.model_copy(update={"workload": workload}))
    answer.say(f"With a {name} of {target}{f' instead of {known}' if known else ''}:")
    _longer_step(conversation, study, answer)
    _new_order(conversation, study, answer)


def _slice(conversation: Conversation, answer: Draft, text: str) -> None:
    study = conversation.study
    if study.slice is None:
        raise InsufficientEvidenceError("the hardware is not on record", where=conversation.id, hint="--hardware NAME")
    chip, factor = _CHIP.search(text), _factor(text)
    stated = _NUMBER.search(text) if factor is None else None
    devices = int(stated[1]) if stated and int(stated[1]) > 0 else int(study.slice.devices * (factor or 2))
    name, count = (chip[1], None) if chip else (study.slice.chip.name, devices)
    reference, notes = refer_to_hardware(name, None, None, count)
    answer.say(f"On {_hardware(reference)} instead of {study.slice.devices} devices:")
    answer.say(*(f"! {note}" for note in notes))
    plan = _stretched(study.plan, study.slice.devices, devices)
    experiment = study.experiment.model_copy(update={"hardware": reference, "plan": plan})
    if not _is_complete(experiment):
        raise InsufficientEvidenceError(
            "another number of devices can be predicted from the architecture, the batch and the sequence only",
            where=conversation.id,
            hint="asap experiments add ID --config FILE --hardware NAME",
        )
    field = _survey(conversation, study_of(experiment))
    if field.incumbent is not None:
        answer.say(f"- what runs now, with its data axis stretched: {_absolute(field.incumbent)}")
        answer.rest_on(f"{plan}: step time", field.incumbent.step_time)
    for rank, candidate in enumerate(choose(field.candidates, plan), 1):
        answer.say(line(conversation, candidate, rank))
        answer.rest_on(f"{candidate.plan}: step time", candidate.prediction.step_time)


def _stretched(plan: Plan | None, before: int, after: int) -> Plan | None:
    """What runs now on another number of devices, where the data axis can take up the difference."""
    degree = plan.degree("data") * after if plan is not None and plan.dcn.devices == 1 else 1
    return (
        plan.with_ici(data=degree // before) if plan is not None and degree >= before and degree % before == 0 else None
    )


def _absolute(prediction: Prediction) -> str:
    held = f", HBM {phrases.memory_phrase(prediction)}" if prediction.memory else ""
    step = f"step time {phrases.interval(prediction.step_time)}" if prediction.step_time else "step time unknown"
    return f"{prediction.plan}: {step}{held}"


def _remat(conversation: Conversation, answer: Draft, text: str) -> None:
    study = conversation.study
    if study.plan is None:
        raise InsufficientEvidenceError("the plan that runs is not known", where=conversation.id)
    match = _POLICY.search(text)
    policies = [Remat.NONE] if _NO_REMAT.search(text) else [Remat(match[1].lower())] if match else _policies(study)
    plans = [study.plan.model_copy(update={"remat": policy}) for policy in policies if policy != study.plan.remat]
    predictions = expect(study, plans)
    if all(prediction.method == "what_if" for prediction in predictions):
        raise InsufficientEvidenceError(
            "what another rematerialisation costs and saves follows from the architecture, which is not on record",
            where=conversation.id,
            hint="asap experiments add ID --config FILE --hardware NAME --profile PATH",
        )
    answer.say(f"The same mesh with another rematerialisation (now {study.plan.remat or 'not on record'}):")
    for prediction in predictions:
        memory = prediction.memory
        fits = "fits" if memory and memory.fits else "does not fit"
        held = f", HBM {phrases.memory_phrase(prediction)} ({fits})" if memory else ""
        answer.say(f"- {prediction.plan}: {expectation(prediction)}{held}")
        answer.rest_on(f"{prediction.plan}: step time", prediction.relative_step_time)


def _policies(study: Study) -> Sequence[Remat]:
    """Those that the stack has a name for."""
    if study.slice is None:
        return tuple(Remat)
    return KNOWN[allocator_class(study.experiment.workload.framework, study.slice.chip.kind)]


def _is_complete(experiment: Experiment) -> bool:
    """Whether the calibrated model can be used."""
    return experiment.model is not None and not experiment.model.missing() and bool(experiment.workload.tokens)


def _target(text: str, known: int | None) -> int | None:
    factor = _factor(text)
    if factor is None and (stated := _NUMBER.findall(text)):
        number, thousands = stated[-1]
        return int(number) * (1024 if thousands else 1) or None
    return None if known is None else int(known * (factor or 2)) or None


def _factor(text: str) -> float | None:
    """By how much something is to be multiplied, where that is said."""
    if times := _TIMES.search(text):
        return float(times[1] or times[2]) or None
    return next((factor for factor, words in _FACTORS.items() if words.search(text)), None)


def _without_step_time(study: Study, experiment: Experiment) -> Study:
    """The study of a changed record: where time goes is still what was measured, how long a step takes is not."""
    profile = study.profile
    if profile is not None:
        profile = profile.model_copy(update={"kpis": profile.kpis.model_copy(update={"step_time_s": None})})
    return study_of(experiment, profile)


def _longer_step(conversation: Conversation, changed: Study, answer: Draft) -> None:
    """How much longer the step of what runs now gets, where the architecture says it."""
    plan, experiment = conversation.study.plan, changed.experiment
    if plan is None:
        return
    broken = violations(plan, changed.constraints)
    if broken:
        answer.say(f"- what runs now ({plan}) could not run: {'; '.join(v.sentence for v in broken)}")
        return
    if (
        changed.slice is None
        or experiment.model is None
        or experiment.model.missing()
        or not experiment.workload.tokens
    ):
        answer.say("- how long a step then takes is not known: that follows from the architecture, batch and sequence")
        return
    from asap.prediction import predict

    before, after = (
        predict(plan, study.experiment.model, study.experiment.workload, changed.slice)[0].step_time
        for study in (conversation.study, changed)
    )
    _ratio(answer, plan, before, after)


def _ratio(answer: Draft, plan: Plan, before: Quantity | None, after: Quantity | None) -> None:
    if before is not None and after is not None:
        answer.say(
            f"- a step of what runs now ({plan}) takes {significant(after.value / before.value)} times as long"
            f" ({after.provenance.value})"
        )
        answer.rest_on("step time after the change", after)
        answer.rest_on("step time before the change", before)


def _new_order(conversation: Conversation, study: Study, answer: Draft) -> None:
    now = [candidate.plan for candidate in conversation.standing]
    field = _survey(conversation, study)
    chosen = choose([c for c in field.candidates if c.plan not in conversation.weighed.lost], study.plan)
    for rank, candidate in enumerate(chosen, 1):
        answer.say(line(conversation, candidate, rank))
        answer.rest_on(f"{candidate.plan}: step time", candidate.prediction.relative_step_time)
    _difference(now, [candidate.plan for candidate in chosen], answer)


def _difference(now: Sequence[Plan], then: Sequence[Plan], answer: Draft) -> None:
    if list(now) == list(then):
        answer.say("The order is the same.")
    elif now and then and now[0] != then[0]:
        answer.say(f"The first is another: {then[0]} instead of {now[0]}.")
    else:
        answer.say("The first is the same; those behind it change.")


def _survey(conversation: Conversation, study: Study) -> Field:
    desk = Desk(conversation.store)
    desk.put(study)
    return desk.survey(study.experiment.id)


def _hardware(reference: HardwareReference) -> str:
    shape = "x".join(map(str, reference.topology)) if reference.topology else ""
    return " ".join(filter(None, (reference.chip, shape, f"({reference.devices} devices)")))
