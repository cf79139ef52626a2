"""What the compiler flags of a proposal are for: "what are all these xla flags in 2"."""

import re
from itertools import groupby

from asap.chat.answers.single_plans.lines.launch_line import plans_to_run
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.flags.document import FlagAdvice
from asap.flags.environment import GivenFlag
from asap.plans import Plan
from asap.study.flags import flag_of, flags_for

_FLAGS = re.compile(
    r"\b(?:(?:xla|libtpu|compiler|nccl|env\w*) (?:\w+ )?(?:flags?|options?|args?|variables?|vars?|stuff)"
    r"|libtpu_init_args|xla_flags|flags?|exports?)\b",
    re.I,
)
_PURPOSE = re.compile(
    r"\b(?:what|why|wtf|explain\w*|mean\w*|purpose|reason|really|do (?:i|we))\b[^?]*\b(?:for|do|does|doing|need\w*"
    r"|mean\w*|there|about|all|those|these|necessary|required|purpose)\b|\b(?:explain|why)\b",
    re.I,
)


def asks_flag_purposes(conversation: Conversation, question: Question) -> bool:
    """Whether it asks what flags are for that a proposal adds."""
    text = question.text
    asked = _FLAGS.search(text) is not None and _PURPOSE.search(text) is not None and question.change.empty
    return asked and _flagged(conversation, question) is not None


def flag_purposes(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Why the plan needs them, and what each is for."""
    plan = _flagged(conversation, question)
    if plan is None:
        return
    answer.focus, answer.complete = plan, True
    for advice in flags_for(conversation.study, plan).missing:
        answer.add(f"{plan} adds {len(advice.flags)} flags: {advice.reason} ({advice.source}).")
        answer.add(*_purposes(conversation, advice))
    answer.add("The plan runs without them, perhaps slower; no gain is predicted for a flag, so one run tells.")


def _flagged(conversation: Conversation, question: Question) -> Plan | None:
    """The first plan with flags of its own: of those that are named, else of what was spoken of and proposed."""
    plans = question.plans or (*plans_to_run(conversation, question), *conversation.order)
    full = (whole(conversation, plan) for plan in plans)
    return next((plan for plan in full if flags_for(conversation.study, plan).missing), None)


def _purposes(conversation: Conversation, advice: FlagAdvice) -> list[str]:
    """Each purpose with the flags that have it."""
    known = []
    for name, value in advice.flags.items():
        found = flag_of(conversation.study, GivenFlag(name, value)).set
        known.append((next((one.purpose for one in found if one.purpose), "not in the tables"), name))
    return [f"- {why}: {', '.join(name for _, name in of)}" for why, of in groupby(known, key=lambda pair: pair[0])]
