"""Answers on the run itself: what holds it back, what to capture next, where facts come from, help."""

from asap.agents.chat.conversation import Conversation
from asap.agents.chat.evidence import current_step_time
from asap.agents.chat.reply import Draft
from asap.agents.chat.wording import drafted, seconds
from asap.core.text import plain
from asap.diagnosis.diagnose import CAPTURE
from asap.proposals.cite import similar_runs

UNKNOWN = "not on record"
MOST_PRECEDENTS = 4
LONGEST_TITLE, LONGEST_NOTE = 160, 500

HELP = """\
I answer from the engine about this run. Ask, for instance:
  which one first?  how sure are you, and on what does that rest?  what would change your mind?
  why not model=8?  explain 2  compare 1 and 3  turn proposal 1 into a MaxText line
  what if the batch doubles / the sequence doubles / the slice doubles / we use full remat?
  what is the bottleneck?  what should I capture next?
State facts and they count: "proposal 1 ran out of memory", "proposal 2 measured 2.1 s", "our batch is 512"."""


def bottleneck(conversation: Conversation, answer: Draft) -> None:
    """What holds the run back, and the evidence."""
    diagnosis = conversation.study.diagnosis
    answer.say(f"{diagnosis.bottleneck.value.replace('_', ' ')}: {diagnosis.statement}")
    for finding in diagnosis.findings:
        if finding.statement != diagnosis.statement:
            answer.say(f"- {finding.statement}")
        for item in finding.evidence:
            answer.rest_on(item.fact, item.quantity)
    answer.say(*(f"- {sentence}" for sentence in diagnosis.correlation))


def run(conversation: Conversation, answer: Draft) -> None:
    """What runs now, as far as it is on record."""
    study = conversation.study
    workload, model = study.experiment.workload, study.experiment.model
    answer.say(f"plan: {study.plan or UNKNOWN}")
    hardware = f"{study.slice.chip.name}, {study.slice.devices} devices" if study.slice else UNKNOWN
    layers = f"{model.layers} layers of width {model.d_model}" if model else UNKNOWN
    answer.say(f"hardware: {hardware}", f"model: {layers}")
    answer.say(f"global batch: {workload.global_batch or UNKNOWN}", f"sequence: {workload.sequence_length or UNKNOWN}")
    now = current_step_time(study, conversation.evidence)
    answer.say(f"step time: {seconds(now.value)} ({now.provenance.value})" if now else f"step time: {UNKNOWN}")
    answer.rest_on("step time of what runs now", now)


def precedents(conversation: Conversation, answer: Draft) -> None:
    """Past optimizations of runs like this one, failed ones too."""
    hits = similar_runs(conversation.study, MOST_PRECEDENTS)
    for hit in hits:
        record = hit.record
        change = f"{record.before} → {record.after}: " if record.before and record.after else ""
        gain = f", {record.speedup:.2f} times as fast" if record.speedup else ""
        outcome = f"{record.outcome.replace('_', ' ')}{gain}"
        answer.say(f"- {change}{outcome}; {plain(record.title, LONGEST_TITLE)} [{record.id}]")
        answer.say(f"  like this run: {plain(', '.join(hit.why), LONGEST_TITLE)}")
    if not hits:
        answer.say("The history holds no run that is like this one.")


def principle(conversation: Conversation, answer: Draft, text: str) -> None:
    """What the notes say about a question."""
    from asap.knowledge import search_knowledge

    for hit in search_knowledge(text, 2):
        note = hit.note
        answer.say(plain(note.title), f"  {plain(note.body, LONGEST_NOTE)} [{note.id}]")
    if not answer.lines:
        unknown(conversation, answer)


def capture(conversation: Conversation, answer: Draft) -> None:
    """What to record next, and what each thing would tell."""
    study = conversation.study
    gaps = study.diagnosis.missing
    answer.say("Capture next:")
    answer.say(*(f"- {gap.what.rstrip('.')}: {gap.capture or CAPTURE}" for gap in gaps))
    answer.say(*(f"- {finding.advice}" for finding in study.diagnosis.findings if finding.advice))
    model, workload = study.experiment.model, study.experiment.workload
    unknown = ["the architecture"] if model is None else [f"the model's {name}" for name in model.missing()]
    unknown += ["the global batch"] if workload.global_batch is None else []
    unknown += ["the sequence length"] if workload.sequence_length is None else []
    if unknown:
        answer.say(f"- for narrower intervals: {', '.join(unknown)} (asap experiments add ID --config FILE)")
    standing = conversation.standing
    if standing:
        answer.focus = standing[0].plan
        answer.say(f'- a step time of {standing[0].plan}, then tell me: "proposal 1 measured … s"')


def sources(conversation: Conversation, answer: Draft) -> None:
    """Where the facts and the figures come from."""
    study = conversation.study
    profile = study.profile
    answer.say(f"experiment {study.experiment.id}, session {conversation.session}")
    if profile is not None:
        answer.say(f"facts: {'stated by' if profile.stated else 'measured,'} {profile.source}")
    rows = dict.fromkeys(f"{path}: {origin}" for path, origin in study.experiment.provenance.items())
    answer.say(*rows)
    for rank, candidate in enumerate(conversation.standing, 1):
        relative = candidate.prediction.relative_step_time or candidate.prediction.step_time
        if relative is not None:
            answer.say(f"proposal {rank}: {relative.provenance.value}, {relative.source}")
        for citation in drafted(conversation, candidate, rank).citations:
            answer.say(f"  § {citation.title} [{citation.id}{f', {citation.url}' if citation.url else ''}]")


def help(conversation: Conversation, answer: Draft) -> None:
    """What can be asked."""
    answer.say(*HELP.splitlines())


def thanks(conversation: Conversation, answer: Draft) -> None:
    """A pleasant end."""
    standing = conversation.standing
    answer.say("You are welcome." + (f" Tell me what {standing[0].plan} measures; it will count." if standing else ""))


def unknown(conversation: Conversation, answer: Draft) -> None:
    """An honest way out."""
    answer.say("I do not understand that, and would rather not guess. Nothing has changed.")
    answer.say('Ask "which one first?", "why not model=8?", "what if the batch doubles?", or /help.')
