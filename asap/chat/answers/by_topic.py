"""The answer to each topic, and a question of its kind for the help."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from asap.chat.answers import named_plans
from asap.chat.answers.other_runs import changes
from asap.chat.answers.other_runs.largest import largest
from asap.chat.answers.other_runs.spare_chips import spare_chips
from asap.chat.answers.proposals import measurements
from asap.chat.answers.proposals.fitting import fitting, names_memory
from asap.chat.answers.proposals.order import ranking as ranking_answers
from asap.chat.answers.proposals.order import verdicts
from asap.chat.answers.proposals.order.criteria import rank_by
from asap.chat.answers.proposals.order.what_fits_now import too_tight_now
from asap.chat.answers.proposals.quotes import basis, own_figure, quoted
from asap.chat.answers.proposals.search_space import search_space
from asap.chat.answers.proposals.single_changes import single_changes
from asap.chat.answers.proposals.target import target
from asap.chat.answers.proposals.testing import next_test
from asap.chat.answers.proposals.testing.test_cost import test_cost
from asap.chat.answers.proposals.testing.verification import verification
from asap.chat.answers.shown_figures import figure_shown
from asap.chat.answers.single_plans.memory.memory import memory
from asap.chat.answers.single_plans.numerics import changes_numerics, numerics
from asap.chat.answers.single_plans.plausible import plausible
from asap.chat.answers.single_plans.sharding import sharding
from asap.chat.answers.single_plans.techniques.sequence_parallelism import sequence_parallelism
from asap.chat.answers.single_plans.throughput import throughput
from asap.chat.answers.talk import beyond, hearsay, small_talk
from asap.chat.answers.talk.help_text import questions
from asap.chat.answers.this_run import flags
from asap.chat.answers.this_run import profile as profile_answers
from asap.chat.answers.this_run import run as run_answers
from asap.chat.answers.this_run.capture import capture
from asap.chat.answers.this_run.components import components
from asap.chat.answers.this_run.rates.efficiency import efficiency
from asap.chat.answers.this_run.review import review
from asap.chat.answers.this_run.terms import term
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.things import things_kept, things_named
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic

_Answer = Callable[[Conversation, ReplyBuilder, Question], None]
_Short = Callable[[Conversation, ReplyBuilder], None]


def _short(answered: _Short) -> _Answer:
    return lambda conversation, answer, question: answered(conversation, answer)


@dataclass(frozen=True)
class Kind:
    """Questions of one topic.

    Args:
        answer: puts the answer together.
        example: such a question, for the help; ``None`` for talk that needs no example.
    """

    answer: _Answer
    example: str | None = None


def _fitting(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What makes it fit: any setting, or the batch, the sequence or the chips where they are named."""
    named = set(things_named(question.text)) - things_kept(question.text)
    if {"batch", "per_device_batch", "local_batch", "sequence", "chips"} & named:
        largest(conversation, answer, question)
    elif not names_memory(question.text) and too_tight_now(conversation) is None:
        next_test.what_to_test(conversation, answer)
    else:
        fitting(conversation, answer)


_CANNOT_RUN = re.compile(
    r"(?:\b(?:not|never|cannot)|n't) (?:even )?(?:fit|run|work|start)\w*\b|\boom\w*|\bout of memory\b", re.I
)


def _quoted(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """A figure that the engine is said to have named: one that the analysis shows is its own."""
    if _CANNOT_RUN.search(question.text) and too_tight_now(conversation) is not None:
        memory(conversation, answer, replace(question, plans=()))
        return
    shown = figure_shown(conversation, question) is not None
    (own_figure if shown else quoted)(conversation, answer, question)


def _learning(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What is learnt: of a change of precision what it does to the numerics, else that it is not known."""
    if changes_numerics(question):
        numerics(conversation, answer, question)
    elif beyond.asks_learning_of_plans(question):
        numerics(conversation, answer, question)
        answer.add(
            "So the loss is expected to follow the same curve but for rounding; I do not predict the loss itself."
        )
    else:
        beyond.learning(conversation, answer)


def _xla_flags(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The flags of the run; of a plan that is named, its line for the launcher, which has the flags that it needs.

    "Which flags should we set" may be of either.
    """
    of_compiler = flags.names_compiler(question.text)
    others = [plan for plan in question.plans if plan != conversation.study.plan]
    if of_compiler or not question.plans:
        flags.xla_flags(conversation, answer)
    if others or not of_compiler:
        named_plans.maxtext(conversation, answer, question)


def help(conversation: Conversation, answer: ReplyBuilder) -> None:
    """A question of each kind that is answered, and how facts are stated."""
    answer.add(*questions([kind.example for kind in ANSWERS.values() if kind.example]))


ANSWERS: dict[Topic, Kind] = {
    Topic.THANKS: Kind(_short(small_talk.thanks)),
    Topic.GREETING: Kind(_short(small_talk.greeting)),
    Topic.HELP: Kind(_short(help)),
    Topic.OUT_OF_SCOPE: Kind(_short(small_talk.out_of_scope)),
    Topic.SERVING: Kind(_short(beyond.serving)),
    Topic.LEARNING: Kind(_learning),
    Topic.HOSTILE: Kind(_short(small_talk.hostile)),
    Topic.MAXTEXT: Kind(named_plans.maxtext, "turn proposal 1 into a MaxText line"),
    Topic.XLA_FLAGS: Kind(_xla_flags, "which compiler flags help?"),
    Topic.CHANGE_OF_MIND: Kind(_short(ranking_answers.change_of_mind), "what would change your mind?"),
    Topic.CAPTURE: Kind(_short(capture), "what should I capture next?"),
    Topic.OPINION: Kind(hearsay.seen_differently),
    Topic.FALSE_CLAIM: Kind(_quoted),
    Topic.SURE: Kind(named_plans.sure, "how sure are you of proposal 1?"),
    Topic.BASIS: Kind(basis, "why is the interval so wide?"),
    Topic.WORTH_IT: Kind(lambda c, a, q: verdicts.worth_it(c, a, q.plans), "is proposal 1 worth a test?"),
    Topic.EVIDENCE: Kind(_short(ranking_answers.evidence), "which facts are on record?"),
    Topic.MEASURED: Kind(_short(measurements.gain), "what did we really gain?"),
    Topic.PREDICTION_CHECK: Kind(measurements.prediction_check, "how far off was your prediction?"),
    Topic.SOURCES: Kind(_short(run_answers.sources), "show me the sources"),
    Topic.COMPARE: Kind(named_plans.compare, "compare proposals 1 and 2"),
    Topic.RANK_BY: Kind(rank_by, "which one needs the least memory?"),
    Topic.WHY_NOT: Kind(named_plans.about_plans, "why not model=8?"),
    Topic.WHAT_IF: Kind(changes.no_change, "what if the batch doubles?"),
    Topic.EXPLAIN: Kind(named_plans.explain, "explain proposal 2"),
    Topic.FIRST: Kind(_short(next_test.what_to_test), "which one should I test first?"),
    Topic.SUMMARY: Kind(_short(verdicts.summary), "one sentence for my boss"),
    Topic.BOTTLENECK: Kind(run_answers.bottleneck, "what is the bottleneck?"),
    Topic.OPERATIONS: Kind(profile_answers.operations, "which operations take the most time?"),
    Topic.ROOFLINE: Kind(profile_answers.roofline, "where are we under the roofline?"),
    Topic.COLLECTIVES: Kind(profile_answers.collectives, "which axis communicates most?"),
    Topic.MEMORY: Kind(memory, "what fills the HBM?"),
    Topic.THROUGHPUT: Kind(throughput, "how many tokens per second?"),
    Topic.PROPOSALS: Kind(_short(ranking_answers.proposals), "what do you propose?"),
    Topic.SEARCH: Kind(_short(search_space), "how many plans did you look at?"),
    Topic.RUN: Kind(_short(run_answers.run), "what is our current plan?"),
    Topic.PRECEDENT: Kind(run_answers.precedents, "has anyone done this before?"),
    Topic.PRINCIPLE: Kind(lambda c, a, q: run_answers.principle(c, a, q.text), "what do the notes say about overlap?"),
    Topic.TERM: Kind(lambda c, a, q: term(c, a, q.text), "what does P(faster) mean?"),
    Topic.SHARDING: Kind(sharding, "what is split over which axis?"),
    Topic.PLAUSIBLE: Kind(plausible, "is 3 s a step plausible?"),
    Topic.REPORTED: Kind(hearsay.unrecorded),
    Topic.NUMERICS: Kind(numerics, "does proposal 1 change the numerics?"),
    Topic.LARGEST: Kind(largest, "what is the largest batch that fits?"),
    Topic.EFFICIENCY: Kind(efficiency, "why is MFU only 30 %?"),
    Topic.SINGLE_CHANGES: Kind(single_changes, "which setting matters most?"),
    Topic.TEST_COST: Kind(test_cost, "how long until we know?"),
    Topic.SEQUENCE_PARALLEL: Kind(sequence_parallelism),
    Topic.TARGET: Kind(target, "what gets us 20 % more throughput?"),
    Topic.VERIFY: Kind(verification, "how do I verify proposal 1?"),
    Topic.COMPONENTS: Kind(components, "how much of it is attention?"),
    Topic.FITTING: Kind(_fitting, "what makes it fit?"),
    Topic.SPARE: Kind(spare_chips, "how many chips could we give back?"),
    Topic.REVIEW: Kind(_short(review), "is our configuration sane?"),
    Topic.AFTERWARDS: Kind(_short(next_test.what_comes_after), "what comes after proposal 1?"),
}
