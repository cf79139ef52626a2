"""The answer to each topic."""

from collections.abc import Callable

from asap.chat.answers import named_plans
from asap.chat.answers.other_runs import changes
from asap.chat.answers.other_runs.largest import largest
from asap.chat.answers.proposals import measurements, next_test, verdicts
from asap.chat.answers.proposals import ranking as ranking_answers
from asap.chat.answers.proposals.criteria import rank_by
from asap.chat.answers.proposals.target import target
from asap.chat.answers.single_plans import figures
from asap.chat.answers.single_plans.numerics import numerics
from asap.chat.answers.single_plans.plausible import plausible
from asap.chat.answers.single_plans.sharding import sharding
from asap.chat.answers.talk import beyond, hearsay, small_talk
from asap.chat.answers.this_run import flags
from asap.chat.answers.this_run import profile as profile_answers
from asap.chat.answers.this_run import run as run_answers
from asap.chat.answers.this_run.review import review
from asap.chat.answers.this_run.terms import term
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic

_Answer = Callable[[Conversation, ReplyBuilder, Question], None]
_Short = Callable[[Conversation, ReplyBuilder], None]


def _short(answered: _Short) -> _Answer:
    return lambda conversation, answer, question: answered(conversation, answer)


ANSWERS: dict[Topic, _Answer] = {
    Topic.THANKS: _short(small_talk.thanks),
    Topic.GREETING: _short(small_talk.greeting),
    Topic.HELP: _short(small_talk.help),
    Topic.OUT_OF_SCOPE: _short(small_talk.out_of_scope),
    Topic.SERVING: _short(beyond.serving),
    Topic.LEARNING: _short(beyond.learning),
    Topic.HOSTILE: _short(small_talk.hostile),
    Topic.MAXTEXT: named_plans.maxtext,
    Topic.XLA_FLAGS: _short(flags.xla_flags),
    Topic.CHANGE_OF_MIND: _short(ranking_answers.change_of_mind),
    Topic.CAPTURE: _short(run_answers.capture),
    Topic.OPINION: hearsay.seen_differently,
    Topic.FALSE_CLAIM: lambda c, a, q: ranking_answers.false_claim(c, a, q.plans),
    Topic.SURE: named_plans.sure,
    Topic.BASIS: _short(ranking_answers.basis_of),
    Topic.WORTH_IT: lambda c, a, q: verdicts.worth_it(c, a, q.plans),
    Topic.EVIDENCE: _short(ranking_answers.evidence),
    Topic.MEASURED: _short(measurements.gain),
    Topic.PREDICTION_CHECK: _short(measurements.prediction_check),
    Topic.SOURCES: _short(run_answers.sources),
    Topic.COMPARE: named_plans.compare,
    Topic.RANK_BY: lambda c, a, q: rank_by(c, a, q.text),
    Topic.WHY_NOT: named_plans.about_plans,
    Topic.WHAT_IF: changes.no_change,
    Topic.EXPLAIN: named_plans.explain,
    Topic.FIRST: _short(next_test.what_to_test),
    Topic.SUMMARY: _short(verdicts.summary),
    Topic.BOTTLENECK: run_answers.bottleneck,
    Topic.OPERATIONS: profile_answers.operations,
    Topic.ROOFLINE: profile_answers.roofline,
    Topic.COLLECTIVES: profile_answers.collectives,
    Topic.MEMORY: figures.memory,
    Topic.THROUGHPUT: figures.throughput,
    Topic.PROPOSALS: _short(ranking_answers.proposals),
    Topic.RUN: _short(run_answers.run),
    Topic.PRECEDENT: run_answers.precedents,
    Topic.PRINCIPLE: lambda c, a, q: run_answers.principle(c, a, q.text),
    Topic.TERM: lambda c, a, q: term(c, a, q.text),
    Topic.SHARDING: sharding,
    Topic.PLAUSIBLE: plausible,
    Topic.REPORTED: hearsay.unrecorded,
    Topic.NUMERICS: numerics,
    Topic.LARGEST: largest,
    Topic.TARGET: target,
    Topic.REVIEW: _short(review),
    Topic.AFTERWARDS: _short(next_test.what_comes_after),
}
