"""Answers on the run itself: what holds it back, what to capture next, where facts come from, help."""

import re
from dataclasses import replace

from asap.chat.answers.phrasing import drafted, seconds
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.answers.talk.small_talk import unknown
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import predict_scenario, scenario_of
from asap.chat.understanding.question import Question
from asap.core.text import plain
from asap.evidence.anchor import modelled_now
from asap.evidence.step_time import current_step_time
from asap.proposals.reasons.modelled_step import modelled_step
from asap.proposals.selection.precedents import similar_runs

_SLOW = re.compile(r"\b(?:slow|so long)\b", re.I)
"""Said of what runs: a plan that has not run is not slow."""
UNKNOWN = "not on record"
MOST_PRECEDENTS = 4
LONGEST_TITLE, LONGEST_NOTE = 160, 500


def bottleneck(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What holds the run back, and the evidence; by the model where no profile shows it, and for another plan."""
    study, diagnosis = conversation.study, conversation.study.diagnosis
    named = [] if _SLOW.search(question.text) and not question.refs.ranked else question.plans
    others = [whole(conversation, plan) for plan in named if plan != study.plan]
    change = question.of_scenario or question.change
    changed_plans = others or ([study.plan] if study.plan and not change.empty else [])
    for plan in changed_plans:
        scenario = scenario_of(study, change, plan)
        step = modelled_step(replace(scenario.study, profile=None), predict_scenario(scenario))
        changed = f" with {' and '.join(scenario.changes)}" if scenario.changes else ""
        answer.add(f"{scenario.plan}{changed}: {step.statement if step else 'what holds it back is not predicted.'}")
    if changed_plans:
        return
    modelled = modelled_step(study, modelled_now(study))
    if modelled is not None:
        answer.add(modelled.statement)
    answer.add(f"{diagnosis.bottleneck.value.replace('_', ' ')}: {diagnosis.statement}")
    for finding in diagnosis.findings:
        if finding.statement != diagnosis.statement:
            answer.add(f"- {finding.statement}")
        for item in finding.evidence:
            answer.add_figure(item.fact, item.quantity)
    answer.add(*(f"- {sentence}" for sentence in diagnosis.correlation))


def run(conversation: Conversation, answer: ReplyBuilder) -> None:
    """What runs now, as far as it is on record."""
    study = conversation.study
    workload, model = study.experiment.workload, study.experiment.model
    answer.add(f"plan: {study.plan or UNKNOWN}")
    hardware = f"{study.slice.chip.name}, {study.slice.devices} devices" if study.slice else UNKNOWN
    layers = f"{model.layers} layers of width {model.d_model}" if model else UNKNOWN
    answer.add(f"hardware: {hardware}", f"model: {layers}")
    if model is not None and model.is_moe:
        capacity = workload.capacity_factor
        routing = f"capacity factor {capacity:g}" if capacity else "dropless, as far as is on record"
        answer.add(f"experts: {model.experts}, {model.experts_per_token} of them for each token; {routing}")
    answer.add(f"global batch: {workload.global_batch or UNKNOWN}", f"sequence: {workload.sequence_length or UNKNOWN}")
    now = current_step_time(study, conversation.evidence)
    answer.add(f"step time: {seconds(now.value)} ({now.provenance.value})" if now else f"step time: {UNKNOWN}")
    answer.add_figure("step time of what runs now", now)


def precedents(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Past optimizations of runs like this one, failed ones too."""
    hits = similar_runs(conversation.study, MOST_PRECEDENTS)
    for hit in hits:
        record = hit.record
        change = f"{record.before} → {record.after}: " if record.before and record.after else ""
        gain = f", {record.speedup:.2f} times as fast" if record.speedup else ""
        outcome = f"{record.outcome.replace('_', ' ')}{gain}"
        answer.add(f"- {change}{outcome}; {plain(record.title, LONGEST_TITLE)} [{record.id}]")
        answer.add(f"  like this run: {plain(', '.join(hit.why), LONGEST_TITLE)}")
    if not hits:
        answer.add("The history has no run like this one.")
    if re.search(r"\bwhy\b|\bdifferen", question.text, re.I):
        answer.add(
            "A precedent is one run of another model: it is weighed by how like it is, not copied. The prediction here"
            " scales what this run's profile or architecture shows."
        )


def principle(conversation: Conversation, answer: ReplyBuilder, text: str) -> None:
    """What the notes say about a question."""
    from asap.knowledge import search_knowledge

    for hit in search_knowledge(text, 2):
        note = hit.note
        answer.add(plain(note.title), f"  {plain(note.body, LONGEST_NOTE)} [{note.id}]")
    if not answer.lines:
        unknown(conversation, answer)


def sources(conversation: Conversation, answer: ReplyBuilder) -> None:
    """Where the facts and the figures come from."""
    study = conversation.study
    profile = study.profile
    answer.add(f"experiment {study.experiment.id}, session {conversation.session}")
    if profile is not None:
        answer.add(f"facts: {'stated by' if profile.stated else 'measured,'} {profile.source}")
    rows = dict.fromkeys(f"{path}: {origin}" for path, origin in study.experiment.provenance.items())
    answer.add(*rows)
    for rank, candidate in enumerate(conversation.proposals, 1):
        relative = candidate.prediction.relative_step_time or candidate.prediction.step_time
        if relative is not None:
            answer.add(f"proposal {rank}: {relative.provenance.value}, {relative.source}")
        for citation in drafted(conversation, candidate, rank).citations:
            answer.add(f"  § {citation.title} [{citation.id}{f', {citation.url}' if citation.url else ''}]")
