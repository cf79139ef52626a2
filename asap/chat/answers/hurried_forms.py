"""Forms of questions as they are typed in haste: half a sentence on a figure, a setting or a part."""

import re

from asap.chat.answers.form import Form
from asap.chat.answers.other_runs.wanted_figure import asks_wanted_figure
from asap.chat.answers.proposals.one_part import asks_one_part, one_part
from asap.chat.answers.proposals.target import target
from asap.chat.answers.proposals.technique_held import asks_technique_held, technique_held
from asap.chat.answers.single_plans.lines.flag_purposes import asks_flag_purposes, flag_purposes
from asap.chat.answers.single_plans.lines.microbatch_settings import asks_microbatch_settings, microbatch_settings
from asap.chat.answers.single_plans.lines.other_launcher import asks_other_launcher, other_launcher
from asap.chat.answers.single_plans.lines.setting_meaning import (
    asks_setting_meaning,
    asks_unknown_flag,
    setting_meaning,
    unknown_flag,
)
from asap.chat.answers.single_plans.memory.quoted_memory import asks_what_fills, what_fills
from asap.chat.answers.single_plans.memory.shortage import asks_shortage, shortage
from asap.chat.answers.single_plans.plausible import judges_rate, plausible
from asap.chat.answers.talk.beyond import asks_version, versions
from asap.chat.answers.talk.tried import tells_of_trial, trial
from asap.chat.answers.this_run.causes.diverging import (
    asks_loss_of_change,
    asks_recipe_of_change,
    asks_recipe_of_plan,
    divergence,
    loss_of_change,
    recipe_of_change,
    recipe_of_plan,
    tells_of_divergence,
)
from asap.chat.answers.this_run.causes.periodic import periodic, tells_of_periodic
from asap.chat.answers.this_run.rates.ideal import asks_ideal, ideal
from asap.chat.answers.this_run.rates.own_rate import asks_own_rate, own_rate
from asap.chat.answers.this_run.record.stated_model import stated_model, states_model
from asap.chat.answers.this_run.run import precedents
from asap.chat.answers.this_run.volume import asks_volume, volume
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import is_question

_TRIED_BEFORE = re.compile(
    r"\b(?:did|has|have|had)\b[^?]{0,40}\b(?:papers?|authors?|anyone|anybody|somebody|someone|people|others?|they"
    r"|google|meta|nvidia)\b[^?]{0,40}\b(?:tr(?:y|ied)|test(?:ed)?|run|ran|use[d]?|do(?:ne)?|measure[d]?)\b",
    re.I,
)
"""Asks what others did: "did the paper try tp4"."""


def asks_tried_before(question: Question) -> bool:
    """Whether it asks if others ran something of the kind."""
    return _TRIED_BEFORE.search(question.text) is not None and is_question(question.text)


HURRIED_FORMS: tuple[Form, ...] = (
    Form(asks_other_launcher, other_launcher, Topic.MAXTEXT),
    Form(asks_flag_purposes, flag_purposes, Topic.XLA_FLAGS),
    Form(lambda c, q: asks_setting_meaning(q), setting_meaning, Topic.TERM),
    Form(lambda c, q: asks_unknown_flag(q), unknown_flag, Topic.MAXTEXT),
    Form(lambda c, q: asks_technique_held(q), technique_held, Topic.EXPLAIN),
    Form(lambda c, q: asks_one_part(q), one_part, Topic.COMPARE),
    Form(lambda c, q: asks_wanted_figure(q), target, Topic.TARGET),
    Form(tells_of_trial, trial, Topic.REPORTED),
    Form(lambda c, q: asks_tried_before(q), precedents, Topic.PRECEDENT),
    Form(lambda c, q: asks_microbatch_settings(q), microbatch_settings, Topic.RUN),
    Form(lambda c, q: asks_version(q), lambda c, a, q: versions(c, a), Topic.SOURCES),
    Form(lambda c, q: tells_of_periodic(q), periodic, Topic.BOTTLENECK),
    Form(lambda c, q: asks_volume(q), volume, Topic.COLLECTIVES),
    Form(asks_what_fills, what_fills, Topic.MEMORY),
    Form(asks_shortage, shortage, Topic.MEMORY),
    Form(lambda c, q: asks_own_rate(q), own_rate, Topic.THROUGHPUT),
    Form(lambda c, q: judges_rate(q), plausible, Topic.PLAUSIBLE),
    Form(lambda c, q: asks_ideal(q), ideal, Topic.EFFICIENCY),
    Form(lambda c, q: states_model(q), stated_model, Topic.RUN),
    Form(lambda c, q: asks_loss_of_change(q), loss_of_change, Topic.LEARNING),
    Form(lambda c, q: asks_recipe_of_change(q), recipe_of_change, Topic.LEARNING),
    Form(lambda c, q: asks_recipe_of_plan(q), recipe_of_plan, Topic.LEARNING),
    Form(lambda c, q: tells_of_divergence(q), divergence, Topic.LEARNING),
)
