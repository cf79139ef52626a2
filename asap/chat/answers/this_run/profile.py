"""Answers from the profile: operations, their shape and source, the roofline, collectives by kind and axis."""

import re
from collections.abc import Sequence

from asap.answers.hlo import hlo_around
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import AsapError
from asap.core.text import plain
from asap.core.units import format_bytes, format_percent, format_rate, format_seconds, significant
from asap.diagnosis.captures import no_profile
from asap.diagnosis.diagnosis import Bottleneck
from asap.evidence.plausibility import HIGHEST_PUBLISHED_MFU
from asap.plans import Plan
from asap.plans.axes import Axis, meaning_of
from asap.plans.launchers import stack_of
from asap.profiles import Operation
from asap.reports.profile_facts import roofline_facts
from asap.study.study import Study

TOP = 10
_ASKS_FOR_HLO = re.compile(r"\bhlo\b|\boperands?\b|\bfeeds?\b|\bconsum\w+|\busers?\b|\buses\b|\baround\b", re.I)
_NUMBERED = re.compile(r"\b[a-z][\w-]*\.\d+\b", re.I)
"""Names as a compiler numbers them: ``fusion.123``."""
_SHAPE = 80
_OPAQUE = re.compile(r"\b(?:custom[- ](?:calls?|kernels?)|opaque)\b", re.I)
_THEN = re.compile(r"\b(?:then|there|its)\b", re.I)
"""Asks of the plan that was spoken of last."""
_HIDDEN = re.compile(r"\b(?:overlap\w*|hid(?:e|es|den|ing)|exposed|async\w*|concurren\w+)\b", re.I)
_HOW_MUCH = re.compile(
    r"\bhow (?:much|many|large|big)\b|\bwhat (?:share|part|fraction|is (?:the |our )?exposed)\b", re.I
)
_OF_IT = re.compile(r"\bcollectives?\b", re.I)
_KIND = re.compile(r"\b(all-to-all|all-gather|all-reduce|reduce-scatter)\b", re.I)


def asks_hidden(question: Question) -> bool:
    """Whether it asks how much communication nothing hides: "how much of ours is exposed?"."""
    return (
        _HOW_MUCH.search(question.text) is not None
        and re.search(r"\bexposed\b|\bhidden\b", question.text, re.I) is not None
    )


def operations(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The operations that are named, else those that take the most time."""
    listed = _listed(conversation, answer)
    named = [operation for operation in listed if operation.name in question.operations]
    answer.complete = bool(named)
    for operation in named:
        _detail(conversation, answer, operation)
        _hlo(conversation, answer, operation, asked=_ASKS_FOR_HLO.search(question.text) is not None)
    if not named and listed:
        unknown = [name for name in _NUMBERED.findall(question.text) if name not in question.operations]
        answer.add(*(f"There is no operation {plain(name, 60)} in the profile." for name in unknown))
        if _OPAQUE.search(question.text):
            findings = conversation.study.diagnosis.findings
            answer.add(*(finding.statement for finding in findings if _OPAQUE.search(finding.statement)))
        answer.add("Operations by self time (share of the step, time, name):")
        answer.add(*(_row(operation) for operation in listed[:TOP]))
        answer.add(*_opaque(listed))
        answer.operations = (listed[0].name,)


def roofline(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The program under the roofline of its device, and the operations under theirs."""
    listed, profile = _listed(conversation, answer), conversation.study.profile
    if profile is None or not listed:
        answer.add(*_roof_of_the_chip(conversation.study), *least_step(conversation))
        return
    named = [operation for operation in listed if operation.name in question.operations]
    for operation in named:
        _detail(conversation, answer, operation)
    if named:
        return
    known = any(operation.roofline_efficiency is not None for operation in listed)
    answer.add("Roofline: " + ", ".join(f"{label} {value}" for label, value in roofline_facts(profile.roofline)))
    if not known:
        answer.add(
            "- no FLOPs or bytes of its operations are recorded, so their efficiency is unknown (XProf has none here)"
        )
        return
    answer.add(*(_roof(operation) for operation in listed[:TOP]))
    answer.add(*_opaque(listed))


def collectives(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Communication by kind as it was measured, and by mesh axis as it is predicted."""
    study = conversation.study
    profile = study.profile
    if profile is not None and profile.kpis.collectives:
        total = profile.kpis.communication
        answer.add("Measured collectives" + (f" ({format_percent(total)} of the step):" if total else ":"))
        for one in profile.kpis.collectives:
            time = f", {format_seconds(one.time_s)}" if one.time_s else ""
            count = f", {one.occurrences:g} times" if one.occurrences else ""
            answer.add(f"- {one.kind}: {format_percent(one.fraction)} of the step{time}{count}")
    spoken_of = conversation.focus if _THEN.search(question.text) else None
    plan = next(iter(question.plans), None) or spoken_of or study.plan
    if plan is not None:
        _by_axis(conversation, answer, whole(conversation, plan), question.text)
    if not answer.lines:
        answer.add("No collectives are on record: there is no profile, and no architecture to predict them from.")


def _by_axis(conversation: Conversation, answer: ReplyBuilder, plan: Plan, text: str) -> None:
    prediction = prediction_of(conversation, plan)
    answer.focus = plan
    parts = [part for part in prediction.parts if part.axis is not None]
    if not parts or not prediction.step_time:
        uses = _axes(plan)
        if uses:
            answer.add(
                f"Which mesh axis a collective belongs to is not recorded in the profile. {plan} has:"
                f" {'; '.join(uses)}."
            )
        diagnosis = conversation.study.diagnosis
        found = [one.statement for one in diagnosis.findings if one.kind is Bottleneck.COMMUNICATION]
        answer.add(*(f"- {one}" for one in (*found, *(said for said in diagnosis.correlation if _OF_IT.search(said)))))
        if _HIDDEN.search(text):
            answer.add(
                "How much of it is hidden behind compute is not in these facts: a profile with every operation shows"
                " it, as the time in the -done half of asynchronous collectives."
            )
        return
    step = prediction.step_time.value
    asked = dict.fromkeys(kind.lower() for kind in _KIND.findall(text))
    absent = [kind for kind in asked if not any(kind in part.name for part in parts)]
    answer.add(*(f"There is no {kind} in {plan}." for kind in absent))
    answer.add(f"Predicted collectives of {plan} by axis (a step of {format_seconds(step)}, modelled):")
    for part in sorted(parts, key=lambda part: -part.exposed_s):
        answer.add(
            f"- {part.name} on the {part.axis} axis ({meaning_of(part.axis or '')}):"
            f" {format_seconds(part.exposed_s)} exposed ({format_percent(part.exposed_s / step)}),"
            f" {format_seconds(part.busy_s)} busy"
        )


_CARRIED: dict[Axis, str] = {
    "replica": "all-reduce of the gradients on the replica axis",
    "data": "all-gather of the parameters and reduce-scatter (or all-reduce) of the gradients on the data axis",
    "seq": "exchange of keys and values, and the gradients' all-reduce, on the seq axis",
    "model": "all-reduce (or all-gather and reduce-scatter) of activations on the model axis",
    "expert": "all-to-all of tokens on the expert axis",
    "stage": "collective-permute of activations on the stage axis",
}


def _axes(plan: Plan) -> list[str]:
    return [text for axis, text in _CARRIED.items() if plan.degree(axis) > 1]


def _roof_of_the_chip(study: Study) -> list[str]:
    """The roof of the hardware on record, as its data sheet has it."""
    if study.slice is None or (flops := study.slice.chip.peak_flops.get("bf16")) is None:
        return []
    chip = study.slice.chip
    rates = f"{format_rate(flops, 'FLOP/s')} in bf16, {format_rate(chip.hbm_bandwidth, 'B/s')} of HBM"
    ridge = f"{significant(flops / chip.hbm_bandwidth)} FLOP/byte"
    return [
        f"The roof of a {chip.title} chip: {rates}. Operations below {ridge} are bound by HBM, those above by compute."
    ]


def least_step(conversation: Conversation) -> list[str]:
    """The step if all chips computed at their peak, and nothing else took time; nothing without MFU."""
    plan = conversation.study.plan
    found = prediction_of(conversation, plan) if plan is not None else None
    if found is None or found.mfu is None or found.step_time is None:
        return []
    least = format_seconds(found.mfu.value * found.step_time.value)
    return [
        f"At the peak of the chips the model's FLOPs of a step take {least}: no step with this model, batch and"
        f" precision is shorter. Now it takes {format_seconds(found.step_time.value)}"
        f" ({format_percent(found.mfu.value)} MFU, {found.mfu.provenance.value}); the best published runs reach"
        f" {format_percent(HIGHEST_PUBLISHED_MFU, 0)}."
    ]


def _listed(conversation: Conversation, answer: ReplyBuilder) -> Sequence[Operation]:
    profile = conversation.study.profile
    if profile is None or not profile.operations:
        experiment = conversation.study.experiment
        framework = experiment.workload.framework
        capture = no_profile(stack_of(framework) if framework else None, experiment.hyperparameters).capture
        answer.add(f"No profile with operations is on record. Capture one: {capture}")
        return ()
    return profile.operations


def _row(operation: Operation) -> str:
    time = f", {format_seconds(operation.time_s)}" if operation.time_s is not None else ""
    efficiency = operation.roofline_efficiency
    roof = f", {format_percent(efficiency)} of its roof" if efficiency is not None and not operation.opaque else ""
    bound = "" if operation.bound == "unknown" else f", bound by {operation.bound}"
    return f"- {plain(operation.name, 60)}: {format_percent(operation.fraction, 2)}{time}{bound}{roof}"


def _roof(operation: Operation) -> str:
    if operation.opaque:
        return f"- {plain(operation.name, 60)}: {format_percent(operation.fraction, 2)}, opaque (no FLOPs, no bound)"
    return _row(operation)


def _detail(conversation: Conversation, answer: ReplyBuilder, operation: Operation) -> None:
    answer.add(_row(operation).removeprefix("- "))
    facts = {
        "category": plain(operation.category, 40),
        "shape": plain(operation.shape, _SHAPE) if operation.shape else None,
        "source": plain(operation.source, _SHAPE) if operation.source else None,
        "per step": f"{operation.occurrences:g} times" if operation.occurrences else None,
        "FLOP rate": format_rate(operation.flop_rate, "FLOP/s") if operation.flop_rate else None,
        "HBM": f"{format_bytes(operation.memory_bandwidth)}/s" if operation.memory_bandwidth else None,
        "collective": operation.collective,
    }
    answer.add(*(f"- {label}: {value}" for label, value in facts.items() if value))
    absent = [label for label, value in (("shape", operation.shape), ("source", operation.source)) if value is None]
    if absent:
        answer.add(f"- {' and '.join(absent)}: not recorded in this profile")
    efficiency = operation.roofline_efficiency
    if efficiency is not None and not operation.opaque:
        saved = format_percent(operation.fraction * max(1 - efficiency, 0.0), 2)
        answer.add(f"- at its roof it would save {saved} of the step, and no more")
    if operation.opaque:
        answer.add(
            "- opaque: a custom call reports no FLOPs and no bound; a cost_estimate in its kernel would show them"
        )
    if operation.is_collective and conversation.study.plan is not None:
        _axis_of_collective(conversation, answer, operation)


def _hlo(conversation: Conversation, answer: ReplyBuilder, operation: Operation, *, asked: bool) -> None:
    """The HLO around an operation; why there is none, where it was asked for."""
    try:
        lines = hlo_around(conversation.analysed_study, operation.name)
    except AsapError as error:
        if asked:
            answer.add(f"- HLO around it: {plain(error)}")
        return
    answer.add("- HLO around it:", *(f"  {line}" for line in lines))


def _axis_of_collective(conversation: Conversation, answer: ReplyBuilder, operation: Operation) -> None:
    plan = conversation.study.plan
    kind = operation.collective or ""
    possible = [text for text in _axes(plan) if kind in text] if plan else []
    if possible:
        answer.add(f"- mesh axis: not recorded; of {plan} it can be the {'; the '.join(possible)}")


def _opaque(listed: Sequence[Operation]) -> list[str]:
    share = sum(operation.fraction for operation in listed if operation.opaque)
    if not share:
        return []
    return [f"{format_percent(share)} of the time is opaque: custom calls that report neither FLOPs nor a bound."]
