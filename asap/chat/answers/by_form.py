"""Answers to questions that are known by their form: by the plans, the change, the figures or the words in them.

The first form that a question has is the one that answers it; what has none is answered by its topic.
"""

import re
from dataclasses import replace

from asap.chat.answers import named_plans
from asap.chat.answers.closing_forms import CLOSING_FORMS
from asap.chat.answers.form import Form
from asap.chat.answers.hurried_forms import HURRIED_FORMS
from asap.chat.answers.other_runs import changes
from asap.chat.answers.other_runs.chips_for_rate import chips_for_rate, rate_wanted
from asap.chat.answers.other_runs.claimed_gain import claimed_gain, say_gain
from asap.chat.answers.other_runs.imagined_chip import imagined_chip, imagines_chip
from asap.chat.answers.other_runs.priced_chips import priced_chips
from asap.chat.answers.other_runs.recomputation_worth import asks_worth_of_recomputation, recomputation_worth
from asap.chat.answers.other_runs.sweep import sweep
from asap.chat.answers.other_runs.what_if import what_if
from asap.chat.answers.proposals.figure_origin import asks_origin, figure_origin
from asap.chat.answers.proposals.less_of import asks_for_less, less_of
from asap.chat.answers.proposals.limit_cost import limit_cost, limits_asked
from asap.chat.answers.proposals.order import ranking as ranking_answers
from asap.chat.answers.proposals.order.criteria import asks_choice, chooses_of_two, rank_by
from asap.chat.answers.proposals.order.order_since import asks_order_since, order_since
from asap.chat.answers.proposals.order.ruled_out import asks_ruled_out, ruled_out
from asap.chat.answers.proposals.quoted_interval import quoted_interval, wide_interval
from asap.chat.answers.proposals.savings import asks_savings, savings
from asap.chat.answers.proposals.testing.test_cost import test_cost
from asap.chat.answers.proposals.tight_memory import finds_tight, tight_memory
from asap.chat.answers.proposals.within_limits import limits_of, within_limits
from asap.chat.answers.short_replies import SHORT_REPLIES
from asap.chat.answers.single_plans.downsides import asks_downsides, downsides
from asap.chat.answers.single_plans.lines.batch_per_device import asks_batch_per_device, batch_per_device
from asap.chat.answers.single_plans.lines.launch_line import asks_launch_line, asks_where, launch_line, where
from asap.chat.answers.single_plans.memory.fit_check import asks_fit_check, asks_how_long, fit_check, time_to_compile
from asap.chat.answers.single_plans.memory.memory_figure import asks_memory_figure, memory_figure
from asap.chat.answers.single_plans.named_figures import figures_named, say_figures
from asap.chat.answers.single_plans.placement import asks_placement, placement
from asap.chat.answers.single_plans.plausible import judges, plausible
from asap.chat.answers.single_plans.techniques.distributed_optimizer import (
    asks_distributed_optimizer,
    distributed_optimizer,
)
from asap.chat.answers.single_plans.techniques.technique_versus import versus_in, weigh
from asap.chat.answers.single_plans.techniques.technique_worth import technique_worth, techniques_asked
from asap.chat.answers.single_plans.techniques.zero import asks_zero, zero
from asap.chat.answers.single_plans.throughput import throughput
from asap.chat.answers.talk import hearsay, small_talk
from asap.chat.answers.talk.unmodelled import in_use, unmodelled
from asap.chat.answers.terse_forms import TERSE_FORMS
from asap.chat.answers.this_run import profile as profile_answers
from asap.chat.answers.this_run.causes.culprit import blamed, culprit
from asap.chat.answers.this_run.causes.outside_causes import outside_cause, say_outside_cause
from asap.chat.answers.this_run.causes.regressions import another_time, repaired, tells_of_another_time, tells_of_repair
from asap.chat.answers.this_run.causes.suspected import suspected, suspects_in
from asap.chat.answers.this_run.causes.symptoms import symptom_in, symptoms
from asap.chat.answers.this_run.flags import named_flags
from asap.chat.answers.this_run.passes import asks_passes, passes
from asap.chat.answers.this_run.rates.flops_counting import (
    asks_counting,
    asks_difference,
    asks_shortfall,
    counting,
    difference,
    shortfall,
)
from asap.chat.answers.this_run.rates.monitors import monitor, monitored
from asap.chat.answers.this_run.record.assumed import asks_assumed, assumed, assumption_asked, say_assumption
from asap.chat.answers.this_run.record.hardware_figures import hardware_figure, hardware_figure_asked
from asap.chat.answers.this_run.record.model_size import asks_model_size, model_size
from asap.chat.answers.this_run.record.stated_hardware import stated_hardware, states_hardware
from asap.chat.answers.this_run.terms import asks_term, term
from asap.chat.answers.this_run.units import asks_unit, units
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.rematerialisation.saved_tensors import saved_tensors_in
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import is_question
from asap.chat.understanding.words.settings.compiler_flags import flags_named
from asap.chat.understanding.words.settings.unmodelled import says_in_use, unmodelled_in

_PLANNED = {
    Topic.WHY_NOT, Topic.UNKNOWN, Topic.WHAT_IF, Topic.REPORTED, Topic.PROPOSALS, Topic.RUN, Topic.PRINCIPLE,
    Topic.HELP, Topic.WORTH_IT,
}  # fmt: skip
"""Topics that a plan which is written out overrules."""
_OF_PLANS = {Topic.EXPLAIN, Topic.COMPARE, Topic.UNKNOWN, Topic.EFFICIENCY, Topic.PROPOSALS}
_OF_OPERATIONS = {Topic.ROOFLINE, Topic.COLLECTIVES, Topic.BOTTLENECK}
_RATES = re.compile(r"\b(?:mfu|throughput|tok(?:en)?s?(?:/| per | a )s\w*|tps)\b", re.I)
"""Figures of speed that a question wants of the plans that it names."""
_WHETHER = re.compile(r"\b(?:should (?:i|we)|(?:would|does|will) (?:it|that) (?:help|pay)|is it worth)\b", re.I)
"""Asks for a verdict on this run, and not for a rule."""


def form_of(conversation: Conversation, question: Question) -> Form | None:
    """The first form that a question has."""
    return next((form for form in FORMS if form.has(conversation, question)), None)


def _no_such_proposal(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    answer.add(f"There is no proposal {question.refs.missing[0]}. These are:")
    ranking_answers.proposals(conversation, answer)


def _nodes(question: Question) -> list[str]:
    """Nodes whose number of chips is not known."""
    return [amount.text for amount in question.unused if amount.unit == "nodes"]


def _unmodelled(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    technique = unmodelled_in(question.text)
    if technique is not None and says_in_use(question.text):
        in_use(answer, technique)
    elif technique is not None:
        unmodelled(conversation, answer, technique)


def _how_long(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    answer.add(*time_to_compile(conversation))
    test_cost(conversation, answer, question)


def _symptoms(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    if (symptom := symptom_in(question)) is not None:
        symptoms(conversation, answer, question, symptom)


def _figures(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    figures = figures_named(question)
    answer.topic = Topic.MEMORY if all(figure.title == "host memory" for figure in figures) else Topic.BOTTLENECK
    say_figures(conversation, answer, question, figures)


def _chips_for_rate(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    if (rate := rate_wanted(question)) is not None:
        chips_for_rate(conversation, answer, rate)


def _sweep(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    if question.sweep is not None:
        sweep(conversation, answer, question.sweep, next(iter(question.plans), None))


def _techniques(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    for axis in techniques_asked(question):
        technique_worth(conversation, answer, question, axis)


def _wish(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    if question.refs.wish is not None:
        named_plans.wished(conversation, answer, question.refs.wish)


def _asks_wish(question: Question) -> bool:
    alone = question.refs.wish is not None and not question.refs.written and question.change.empty
    return alone and _WHETHER.search(question.text) is not None


def _asks_rate(question: Question) -> bool:
    """Whether it asks for a figure of speed of plans that it names, or of the change that was spoken of."""
    of = question.plans or question.of_scenario
    return bool(of) and question.topic in _OF_PLANS and _RATES.search(question.text) is not None


def _is_opinion_on_plans(question: Question) -> bool:
    named = question.refs.written or question.refs.wish
    return question.topic is Topic.OPINION and bool(named) and not is_question(question.text)


_IN_PLACE_OF = re.compile(r"\b(?:instead of|rather than|over)\b", re.I)
_EITHER = re.compile(r"\b[1-3] or #?[1-3]\b", re.I)
_BOTH = 2


def _one_for_another(question: Question) -> bool:
    """Whether it weighs one proposal against another: "what do I lose with 3 instead of 1", "so 1 or 2"."""
    weighs = _IN_PLACE_OF.search(question.text) is not None and is_question(question.text)
    weighs = weighs or (_EITHER.search(question.text) is not None and not asks_choice(question))
    return weighs and len(question.refs.ranked) == _BOTH and question.change.empty


_BEHIND = re.compile(
    r"\b(?:why|how come)\b.*\b(?:slower|worse|behind|longer|lower|only (?:second|third))\b",
    re.I,
)


def _asks_why_behind(conversation: Conversation, question: Question) -> bool:
    """Whether it asks why one proposal comes after the first: "why is 2 slower"."""
    ranked = question.refs.ranked
    behind = len(ranked) == 1 and ranked[0] in conversation.order[1:] and question.change.empty
    return behind and _BEHIND.search(question.text) is not None


def _beside_first(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    named_plans.compare(conversation, answer, replace(question, plans=(conversation.order[0], *question.refs.ranked)))


def _what_changes(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Both beside each other; what is said next is of the one that would take the place of the other."""
    named_plans.compare(conversation, answer, question)
    if _IN_PLACE_OF.search(question.text):
        answer.focus = question.refs.ranked[0]


FORMS: tuple[Form, ...] = (
    *CLOSING_FORMS,
    *SHORT_REPLIES,
    *HURRIED_FORMS,
    Form(
        lambda c, q: (
            bool(q.refs.missing)
            and not (q.plans or asks_zero(q))
            and (q.change.empty or q.topic is Topic.EXPLAIN)
            and outside_cause(q) is None
        ),
        _no_such_proposal,
        Topic.PROPOSALS,
    ),
    *TERSE_FORMS,
    Form(lambda c, q: asks_unit(q), units, Topic.TERM),
    Form(lambda c, q: bool(flags_named(q.text)), named_flags, Topic.XLA_FLAGS),
    Form(lambda c, q: bool(_nodes(q)), lambda c, a, q: small_talk.unread(a, " and ".join(_nodes(q)))),
    Form(lambda c, q: asks_ruled_out(q), ruled_out, Topic.PROPOSALS),
    Form(lambda c, q: bool(limits_of(c, q)), within_limits, Topic.PROPOSALS),
    Form(lambda c, q: asks_launch_line(q), launch_line, Topic.MAXTEXT),
    Form(lambda c, q: asks_where(q), where, Topic.MAXTEXT),
    Form(lambda c, q: _one_for_another(q), _what_changes, Topic.COMPARE),
    Form(lambda c, q: _asks_why_behind(c, q), _beside_first, Topic.COMPARE),
    Form(lambda c, q: quoted_interval(c, q) is not None, wide_interval, Topic.SURE),
    Form(lambda c, q: asks_batch_per_device(q), batch_per_device, Topic.RUN),
    Form(lambda c, q: asks_savings(q), savings, Topic.TEST_COST),
    Form(lambda c, q: bool(limits_asked(c, q)), limit_cost, Topic.COMPARE),
    Form(lambda c, q: finds_tight(q), tight_memory, Topic.MEMORY),
    Form(lambda c, q: asks_origin(c, q), figure_origin, Topic.BASIS),
    Form(lambda c, q: bool(blamed(c, q)), culprit, Topic.BOTTLENECK),
    Form(lambda c, q: asks_assumed(q), assumed, Topic.RUN),
    Form(lambda c, q: claimed_gain(q) is not None, say_gain, Topic.WHAT_IF),
    Form(lambda c, q: states_hardware(q), stated_hardware, Topic.RUN),
    Form(lambda c, q: tells_of_another_time(q), another_time, Topic.BOTTLENECK),
    Form(lambda c, q: tells_of_repair(q), repaired, Topic.BOTTLENECK),
    Form(lambda c, q: asks_difference(q), difference, Topic.EFFICIENCY),
    Form(lambda c, q: asks_counting(q), counting, Topic.TERM),
    Form(lambda c, q: asks_term(q.text) and not q.refs.ranked, lambda c, a, q: term(c, a, q.text), Topic.TERM),
    Form(lambda c, q: asks_passes(q), passes, Topic.COMPONENTS),
    Form(lambda c, q: outside_cause(q) is not None, say_outside_cause, Topic.BOTTLENECK),
    Form(lambda c, q: bool(suspects_in(q)), suspected, Topic.BOTTLENECK),
    Form(lambda c, q: imagines_chip(q), imagined_chip, Topic.WHAT_IF),
    Form(lambda c, q: hardware_figure_asked(c, q) is not None, hardware_figure, Topic.SOURCES),
    Form(lambda c, q: monitored(q) is not None, monitor, Topic.BOTTLENECK),
    Form(lambda c, q: versus_in(q) is not None, weigh, Topic.COMPARE),
    Form(lambda c, q: asks_distributed_optimizer(c.study, q), distributed_optimizer),
    Form(lambda c, q: asks_zero(q), zero),
    Form(lambda c, q: assumption_asked(q) is not None, say_assumption, Topic.RUN),
    Form(lambda c, q: unmodelled_in(q.text) is not None, _unmodelled, Topic.WHAT_IF),
    Form(lambda c, q: hearsay.tells_of_a_run(q), hearsay.unrecorded),
    Form(lambda c, q: saved_tensors_in(q.text) is not None and not q.change.empty, changes.named_change, Topic.WHAT_IF),
    Form(lambda c, q: asks_fit_check(q), fit_check, Topic.VERIFY),
    Form(lambda c, q: asks_how_long(q), _how_long, Topic.TEST_COST),
    Form(lambda c, q: asks_placement(q), placement, Topic.SHARDING),
    Form(lambda c, q: q.timed is not None and q.change.empty, throughput, Topic.THROUGHPUT),
    Form(lambda c, q: judges(q), plausible, Topic.PLAUSIBLE),
    Form(lambda c, q: asks_model_size(q), model_size, Topic.RUN),
    Form(lambda c, q: chooses_of_two(q), rank_by, Topic.RANK_BY),
    Form(lambda c, q: asks_memory_figure(q), memory_figure, Topic.MEMORY),
    Form(lambda c, q: asks_downsides(q), downsides, Topic.EXPLAIN),
    Form(lambda c, q: asks_for_less(q), less_of, Topic.BOTTLENECK),
    Form(lambda c, q: asks_choice(q), rank_by, Topic.RANK_BY),
    Form(lambda c, q: asks_order_since(q), order_since, Topic.PROPOSALS),
    Form(lambda c, q: asks_shortfall(q), shortfall, Topic.EFFICIENCY),
    Form(lambda c, q: symptom_in(q) is not None, _symptoms, Topic.BOTTLENECK),
    Form(lambda c, q: profile_answers.asks_hidden(q), profile_answers.collectives, Topic.COLLECTIVES),
    Form(lambda c, q: bool(figures_named(q)) and not q.names_money, _figures),
    Form(lambda c, q: len(q.prices) > 1, priced_chips, Topic.THROUGHPUT),
    Form(lambda c, q: rate_wanted(q) is not None, _chips_for_rate, Topic.LARGEST),
    Form(lambda c, q: q.sweep is not None and q.topic in changes.CHANGEABLE, _sweep, Topic.WHAT_IF),
    Form(lambda c, q: q.change.of_network, lambda c, a, q: what_if(c, a, q.change), Topic.WHAT_IF),
    Form(
        lambda c, q: _asks_rate(q),
        throughput,
        Topic.THROUGHPUT,
    ),
    Form(lambda c, q: asks_worth_of_recomputation(q), recomputation_worth),
    Form(lambda c, q: bool(techniques_asked(q)), _techniques),
    Form(lambda c, q: _asks_wish(q), _wish),
    Form(lambda c, q: changes.wants_change(q), changes.named_change),
    Form(
        lambda c, q: bool(q.operations) and q.topic not in _OF_OPERATIONS,
        profile_answers.operations,
        Topic.OPERATIONS,
    ),
    Form(lambda c, q: _is_opinion_on_plans(q), named_plans.opinion),
    Form(lambda c, q: bool(q.refs.written) and q.topic in _PLANNED, named_plans.about_plans),
)
"""Of two forms that a question may have at once, the one that says more of what is asked stands first."""
