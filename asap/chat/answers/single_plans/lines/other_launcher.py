"""A plan in the words of a launcher that does not run it: "yaml for megatron?", or why that one has none."""

from asap.chat.answers.single_plans.lines.launch_line import launch_line, plans_to_run
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.settings.launchers import launcher_named, says_settings
from asap.chat.understanding.words.settings.unmodelled import unmodelled_in
from asap.core.errors import PlanError
from asap.plans.launchers import TITLES, Stack, stack_of, words_of
from asap.proposals.launch import OF_PLAN_ALONE, line_elsewhere

_CORE, _ON_CORE = "Megatron-LM", ("nemo", "bridge")
"""The stack that some others are built on, which refuses what they pass on."""
_FEW = 4
"""Words of a line that only names the launcher: "and for torchtitan?"."""


def asks_other_launcher(conversation: Conversation, question: Question) -> bool:
    """Whether it wants settings as a launcher that it names takes them; of its own, where no more is said."""
    named = launcher_named(question.text)
    if named is None or unmodelled_in(question.text) or not question.change.empty:
        return False
    if named == _own(conversation):
        return len(question.text.split()) <= _FEW and not question.refs.mentions
    return len(question.text.split()) <= _FEW or says_settings(question.text) or question.topic is Topic.MAXTEXT


def other_launcher(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The lines for each plan that is named, else for the one spoken of; one line where the launcher has none."""
    stack = launcher_named(question.text)
    if stack is None:
        return
    if stack == _own(conversation):
        launch_line(conversation, answer, question)
        return
    answer.complete, name = True, TITLES[stack].split()[0]
    for plan in plans_to_run(conversation, question):
        answer.focus = full = whole(conversation, plan)
        if stack not in OF_PLAN_ALONE:
            answer.add(
                f"{name} takes settings on top of a configuration of its own, which is not on record; with one, I write"
                f" them: asap analyze YOUR_CONFIG. {full} is its plan."
            )
            continue
        try:
            lines = line_elsewhere(conversation.study, full, stack)
        except PlanError as error:
            said = error.message.replace(_CORE, name) if stack in _ON_CORE else error.message
            answer.add(f"{full}: {said}.")
            continue
        answer.add(f"{full} as {TITLES[stack]}, beside those of the model:", *lines.splitlines())
        answer.add(f"All figures here are of {TITLES[_own(conversation)].split()[0]}; {name} may take another time.")


def _own(conversation: Conversation) -> Stack:
    experiment = conversation.study.experiment
    return words_of(stack_of(experiment.workload.framework), experiment.hyperparameters)
