"""A loss that turned bad, "nan after switching to 1", or a learning rate for a plan: what a plan has to do with it."""

import re

from asap.chat.answers.single_plans.numerics import numerics, numerics_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.changes import is_of_settings
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import is_question

_DIVERGED = re.compile(
    r"\bnans?\b|\b(?:loss|grad(?:ient)?[- ]?norm)\b[^.?!]*\b(?:spik\w*|explod\w*|diverg\w*|blew up|blow\w* up|inf"
    r"|went up|jump\w*|bad|weird|worse|off)\b|\bdiverg(?:es|ed|ing|ence)\b",
    re.I,
)
_RECIPE = re.compile(r"\b(?:lr|learning[- ]rate|warm-?up|weight decay|adam betas?)\b", re.I)
_LOOSE = {Topic.UNKNOWN, Topic.EXPLAIN, Topic.REPORTED, Topic.OPINION, Topic.SURE, Topic.LEARNING, Topic.WHY_NOT}
"""Topics of a line whose plan is only where something happened."""


def tells_of_divergence(question: Question) -> bool:
    """Whether it says that the loss turned bad."""
    return question.topic in _LOOSE and question.change.empty and _DIVERGED.search(question.text) is not None


def divergence(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the plan changes of the numerics, and how to tell its doing from that of the recipe."""
    numerics(conversation, answer, question)
    answer.complete = True
    answer.add(
        "I do not know the loss, so nothing is recorded. A plan that trains the same should reach the same loss but for"
        " rounding.",
        "To tell, run the old and the new one from one checkpoint for a few steps. If they differ beyond that, the"
        " setup is at fault (precision of gradients or of their sum, another batch, a kernel); if not, the recipe.",
    )


_ADJUSTS = re.compile(
    r"\b(?:do|does|did|should|must|will|would|can|could)"
    r" (?:i|we|you|it|this|that|they|the|my|our)\b[^?]*"
    r"\b(?:(?:re-?)?(?:touch|chang|adjust|scal|tun|set|do|warm)\w*|lower"
    r"|raise|keep|affect\w*|matter|hurt|bump|update)\b",
    re.I,
)
"""Asks whether something of the recipe has to follow."""
_SAME = re.compile(
    r"^\W*(?:(?:and|so|with|at)\W+)*(?:the )?same (?:lr|learning[- ]rate|warm-?up|hyper\w*|hparams)\b"
    r"(?: then| ok| fine)?\W*$",
    re.I,
)


def asks_recipe_of_change(question: Question) -> bool:
    """Whether it asks if the recipe has to follow what was proposed or changed: "does that change the lr"."""
    asked = _ADJUSTS.search(question.text) is not None and _RECIPE.search(question.text) is not None
    asked = asked or _SAME.match(question.text) is not None
    unnamed = all(mention.way == "pointing" for mention in question.refs.mentions)
    return asked and unnamed


def recipe_of_change(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Whether the change that is spoken of is another training, so that the recipe may have to follow."""
    answer.complete = True
    change = question.change if not question.change.empty else question.context.change
    if change is None or (is_of_settings(change) and not change.state):
        answer.add(
            "No: sharding, microbatches and rematerialisation train the same batch with the same operations, and only"
            " sums come in another order. The learning rate and its schedule stay.",
        )
        return
    if change.of_nothing_but_chips:
        answer.add("No, while the global batch stays: more or fewer chips train the same. The learning rate stays.")
        return
    answer.add(
        "It may: another batch, sequence, precision or optimizer is another training. Which learning rate is best"
        " then I cannot tell; common rules scale it with the batch, linearly or with its square root, and a short run"
        " decides.",
        "Step time and HBM do not depend on it.",
    )


_LOSS = re.compile(r"\b(?:loss(?:es)?|convergence|converge[sd]?|accuracy|quality|perplexity|training curve)\b", re.I)
_AFFECTS = re.compile(
    r"\b(?:chang|affect|hurt|impact|alter|differ|worse|harm|degrad|matter|same|move|shift|influenc|break|risk)\w*", re.I
)


_WILL = re.compile(r"^\W*(?:(?:and|but|so|ok|then)\W+)*(?:will|would|does|do|can|could|might|(?:the )?same)\b", re.I)


def asks_loss_of_change(question: Question) -> bool:
    """Whether it asks what a change that it names does to the loss: "does fp8 hurt convergence"."""
    asks = _LOSS.search(question.text) is not None and _AFFECTS.search(question.text) is not None
    supposed = not question.change.empty or _ADJUSTS.search(question.text) or _WILL.match(question.text)
    return asks and bool(supposed) and is_question(question.text)


def loss_of_change(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Whether it is another training; the loss itself is not predicted."""
    answer.complete = True
    change = question.change if not question.change.empty else question.context.change
    if change is None:
        answer.add(
            "No: the proposals train the same batch with the same operations, and only sums come in another order: the"
            " loss is expected to follow the same curve but for rounding. I do not predict the loss itself."
        )
        return
    if (said := numerics_of(conversation.study, change)) is not None:
        answer.add(said)
    elif is_of_settings(change):
        answer.add("It should not: the same batch and operations are trained, and only sums come in another order.")
    elif change.of_nothing_but_chips:
        answer.add("It should not while the global batch stays: more or fewer chips train the same.")
    else:
        answer.add("It may: that is another training, whose loss I cannot predict.")
    answer.add('What it does to the step: ask "what if …" with it.')


def asks_recipe_of_plan(question: Question) -> bool:
    """Whether it asks for another learning rate or the like because of a plan."""
    named = (
        any(mention.way != "pointing" for mention in question.refs.mentions)
        and is_question(question.text)
        and question.topic in _LOOSE - {Topic.LEARNING}
    )
    return named and question.change.empty and _RECIPE.search(question.text) is not None


def recipe_of_plan(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the plan changes of what is trained: where that is nothing, the recipe stays."""
    numerics(conversation, answer, question)
    answer.complete = True
    answer.add("Where the batch and the precision stay, so does the recipe; the best learning rate I cannot tell.")
