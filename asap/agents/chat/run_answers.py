"""Answers on the run itself: what holds it back, what to capture next, where facts come from, help."""

from asap.agents.chat.conversation import Conversation
from asap.agents.chat.reply import Draft
from asap.agents.chat.wording import drafted
from asap.diagnosis.diagnose import CAPTURE

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
