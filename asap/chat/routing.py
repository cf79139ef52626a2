"""Which answer a question gets: by its form, by its topic, and by the plans in it."""

from asap.chat.answers import named_plans
from asap.chat.answers.by_form import form_of
from asap.chat.answers.by_topic import ANSWERS
from asap.chat.answers.other_runs import changes
from asap.chat.answers.proposals.order import ranking as ranking_answers
from asap.chat.answers.shown_figures import answer_shown, calls_it_yours, figure_shown
from asap.chat.answers.suggestions import suggestions
from asap.chat.answers.talk.beyond import learning_left_out
from asap.chat.answers.unused_words import unused_words
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.changes import is_of_settings
from asap.chat.understanding.question import Question
from asap.chat.understanding.references.partial_plan import named_axes
from asap.chat.understanding.scene import Context
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.line_before.count_of_before import count_asked
from asap.evidence.fact import StatedFact

_LOOSE = {Topic.UNKNOWN, Topic.REPORTED, Topic.WHAT_IF, Topic.OUT_OF_SCOPE}
"""Topics of a line that may only repeat a figure of the analysis."""
_LONG = 5
"""Words beyond which more than a plan is asked for."""


def answer_question(
    conversation: Conversation, answer: ReplyBuilder, question: Question, supposed: tuple[StatedFact, ...] = ()
) -> None:
    """Answer a question; raises AsapError where the engine cannot.

    Args:
        conversation: what was analysed, stated and spoken of.
        answer: where the lines go.
        question: what is asked.
        supposed: facts that it only supposes.
    """
    answer.topic = question.topic
    before, answer.lines = answer.lines, []
    try:
        _dispatch(conversation, answer, question, supposed)
    finally:
        _remember(conversation, answer, question)
        own = answer.lines
        answer.lines = [*before, *([] if set(own) <= set(before) else own)]
    if dropped := _dropped(answer, question):
        answer.add(dropped)
    of_loss = question.change.get("loss_chunks") is None and learning_left_out(question)
    if of_loss and answer.topic is Topic.WHAT_IF:
        answer.add(of_loss)
    if unused := unused_words(answer, own, question):
        answer.add(f"This answer leaves out what you say of: {', '.join(unused)}. Ask for that by itself.")


def _dispatch(
    conversation: Conversation, answer: ReplyBuilder, question: Question, supposed: tuple[StatedFact, ...]
) -> None:
    """Answer by what is supposed, else by the form of the question, by its topic, by its plans; else ask back."""
    if any(item.plan is not None for item in supposed):
        answer.topic = Topic.WHAT_IF
        ranking_answers.suppose(conversation, answer, supposed)
    elif (form := form_of(conversation, question)) is not None:
        answer.topic = form.topic or answer.topic
        form.answer(conversation, answer, question)
    elif _is_loose(question) and (shown := figure_shown(conversation, question)) is not None:
        answer_shown(conversation, answer, question, shown)
    elif question.topic in ANSWERS:
        ANSWERS[question.topic].answer(conversation, answer, question)
    elif question.plans and not _points_alone(question):
        if question.topic is Topic.UNKNOWN and len(question.text.split()) > _LONG:
            answer.add("Of that I read the plan alone; this is what I know of it:")
        named_plans.about_plans(conversation, answer, question)
    else:
        changes.not_understood(conversation, answer, question, suggestions(question))


def _points_alone(question: Question) -> bool:
    """Whether nothing but an "it" says what it is of, and no topic what is asked: "cut it how", "tile it by 8"."""
    pointed = bool(question.refs.mentions) and all(one.way == "pointing" for one in question.refs.mentions)
    return question.topic is Topic.UNKNOWN and pointed and question.change.empty


def _is_loose(question: Question) -> bool:
    """Whether it names neither a plan nor a change, and is of no topic of its own."""
    loose = question.topic in _LOOSE or (question.topic is Topic.OPINION and calls_it_yours(question))
    return loose and question.change.empty and not question.refs.written


def _dropped(answer: ReplyBuilder, question: Question) -> str | None:
    """Says that an answer on a plan is of the run as it is, where another run was supposed just before."""
    earlier = question.context.change
    of_plan = bool(question.refs.written) and answer.topic in {Topic.WHY_NOT, Topic.COMPARE}
    of_plan = of_plan or answer.topic is Topic.MAXTEXT
    supposed = earlier is not None and not is_of_settings(earlier)
    if not of_plan or not supposed or not question.change.empty:
        return None
    if question.of_scenario is not None and answer.topic is not Topic.MAXTEXT:
        return None
    if answer.topic is Topic.MAXTEXT:
        return "These lines are of the run as it is, without what was supposed before."
    return 'This is of the run as it is, without what was supposed before. For that, ask "and with …".'


def _remember(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Keep what the next question may leave out."""
    known = {topic.value for topic in Topic}
    topic = Topic(answer.topic) if answer.topic in known else None
    if answer.starts_anew:
        answer.context = Context(topic=topic)
        return
    goes_on = question.of_scenario is not None or question.ellipsis
    change = question.change if not question.change.empty else (question.context.change if goes_on else None)
    change = answer.change or change
    priced = topic is Topic.THROUGHPUT
    tokens, dollars = (question.tokens, question.dollars) if priced else (None, None)
    dollars = question.dollars_named or question.context.dollars if answer.steps is not None else dollars
    wished = (answer.focus,) if question.refs.wish and topic in {Topic.WHY_NOT, Topic.WHAT_IF} and answer.focus else ()
    plans = answer.change_of or question.plans or (question.context.plans if goes_on or tokens else wished)
    operations = question.operations or answer.operations
    criterion = (question.context.criterion if goes_on else question.text) if topic is Topic.RANK_BY else None
    named = {one for plan in question.refs.written for one in named_axes(plan)}
    axis = next(iter(named)) if len(named) == 1 and change is None else None
    update = {
        "criterion": criterion,
        "axis": axis,
        "topic": topic,
        "plans": plans,
        "change": change,
        "operations": operations,
        "limits": answer.limits,
        "steps": answer.steps,
        "timed": question.timed if priced else None,
        "asked": count_asked(question.text),
        "figure": None,
        "offered": answer.offered,
        "term": answer.term,
        "goal": answer.goal,
    }
    answer.context = question.context.model_copy(update={**update, "tokens": tokens, "dollars": dollars})
