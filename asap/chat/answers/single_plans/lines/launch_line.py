"""The line for the launcher, asked for in few words: "whats the line", "paste it", "flags and mesh for 2"."""

import re

from asap.chat.answers.single_plans import plans as plan_answers
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.plans import Plan
from asap.plans.launchers import Stack, stack_of

_LINE = (
    r"(?:(?:launch(?:er)?|run|start|cli|command|paste|maxtext|megatron|exact|full|actual|whole)\s+)*(?:command|line)s?"
)
_ONE = r"(?:flags|args|arguments|mesh)"
_SETTINGS = rf"(?:overrides|snippet|{_ONE}(?:\s*(?:\+|&|,|and|plus)\s*(?:the\s+)?{_ONE})?)"
_OF_A_PLAN = (
    r"\s+(?:(?:for|of|with|to (?:run|launch|try|start|use|paste))\s+)?"
    r"(?:it|(?:that|this)(?: one)?|#?[1-3]|(?:proposal|option|plan)\s+\d|the \w+ one)"
)
_END = r"(?=\W*$|\s*[,;.]\s|\s+(?:then|please|now|again|to (?:paste|run|launch|use|copy))\b)"
_NOUN = re.compile(
    r"(?:^|[.;,!]\s+)\W*(?:(?:ok(?:ay)?|and|so|now|then|just|the)\W+)*(?:(?:launch(?:er)?|cli|paste|exact|full|actual|whole)\s+)?"
    r"(?:commands?|lines?|args|arguments|flags|overrides|toml|ya?ml|snippet)"
    r"(?:\s+(?:for|of|to run)\s+(?:it|that|this|#?[1-3]|proposal \d))?(?:\s+(?:please|now|then))?\W*$",
    re.I,
)
"""Nothing but what is wanted: "args please", "the line for 2"."""
_ASKS = re.compile(
    r"\bpaste(?: (?:it|that|this|me|us|the|[1-3]|proposal)\b|able\b|\W*$)"
    r"|\b(?:what(?:'s| is| are)|give|show|send|need|want|get|print|drop|got)(?: (?:me|us))?(?: (?:the|a|its|that))?"
    rf" (?:{_LINE}(?:{_OF_A_PLAN})?{_END}|{_SETTINGS}{_OF_A_PLAN}{_END})",
    re.I,
)


_WHERE = re.compile(
    r"\b(?:which|what) (?:config(?:uration)? )?(?:file|ya?ml|toml|script|place)s?\b"
    r"|\bwhere (?:do|should|would|can|must|to)(?: (?:i|we|you))? (?:put|set|change|edit|paste|add|write|configure)\b"
    r"|\b(?:is|are|does|do|goes?) (?:it|that|this|they|those|these)\b[^?]*"
    r"\b(?:ya?ml|toml|config\w*|cli|command line|script|file)\b",
    re.I,
)
"""Asks where the settings are written."""
_OF_FILES = re.compile(r"\b(?:traces?|profiles?|logs?|dumps?|nsys|xplane|snapshots?|checkpoints?|data(?:set)?)\b", re.I)
"""Files that somebody has, and no settings."""
_PLACES: dict[Stack, str] = {
    "maxtext": "They are key=value pairs: behind the YAML file on the command line, which wins, or in that file.",
    "megatron": "They are arguments of the command that starts the training, in the place of those of the same name.",
    "nemo": "They are overrides on the command line, or the same keys in the YAML file.",
    "bridge": "They are overrides on the command line of the recipe, or the same keys in its file.",
    "torchtitan": "They are options on the command line, or keys of the same sections in the TOML file.",
    "deepspeed": "They are keys of the JSON file that --deepspeed_config names.",
    "nanotron": "They are keys of the YAML file.",
    "axolotl": "They are keys of the YAML file.",
    "accelerate": "They are keys of the file that accelerate launch takes, or options of the trainer.",
    "primus": "They are keys of the YAML file, under overrides.",
    "fsdp": "They are options on the command line.",
}


def asks_where(question: Question) -> bool:
    """Whether it asks into which file or where the settings go."""
    of_files = _OF_FILES.search(question.text) is not None
    return (
        _WHERE.search(question.text) is not None
        and not of_files
        and question.change.empty
        and question.refs.wish is None
    )


def where(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The settings of the plan, and where its launcher takes them."""
    launch_line(conversation, answer, question)
    answer.add(_PLACES[stack_of(conversation.study.experiment.workload.framework)])


def asks_launch_line(question: Question) -> bool:
    """Whether it asks for what is to be pasted."""
    asked = _ASKS.search(question.text) is not None or _NOUN.search(question.text) is not None
    return asked and question.change.empty and question.refs.wish is None


def launch_line(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of each plan that is named, else of the one spoken of, else of the first; nobody asks for what runs already."""
    for plan in plans_to_run(conversation, question):
        plan_answers.maxtext(conversation, answer, plan)
    if not answer.lines:
        answer.add('There is no proposal to run. Name a plan, as in "the line for data=16 model=4".')


def plans_to_run(conversation: Conversation, question: Question) -> tuple[Plan, ...]:
    """The plans that are named, else the one spoken of, else the first; what runs needs no line."""
    if question.plans:
        return question.plans
    focus = conversation.focus
    if focus is not None and whole(conversation, focus) != conversation.study.plan:
        return (focus,)
    return tuple(conversation.order[:1])
