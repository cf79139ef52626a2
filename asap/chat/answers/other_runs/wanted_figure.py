"""A figure that is wanted of the run: "i need 10k tok/s/chip, reachable?", "must hit 45 % mfu"."""

import re

from asap.chat.answers.other_runs.chips_for_rate import rate_wanted
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.chat.understanding.words.wished import wishes_figure
from asap.evidence.plausibility import SAYS_MFU

_RATES = {"tokens/s", "tokens/s/chip", "FLOP/s"}
_REACHED = re.compile(
    r"\b(?:reach\w*|feasib\w*|possib\w*|doable|realistic\w*|attain\w*|achiev\w*|hit|get (?:to|there|me|us)|manage"
    r"|in reach|how (?:close|far)|any chance|pull off|need|want|target|goal)\b",
    re.I,
)
_ATTAINED = re.compile(r"\b(?:reach\w*|attain\w*|achiev\w*|feasib\w*|doable)\b[^?]*\?", re.I)
_DISTANCE = re.compile(r"\bhow (?:close|far)\b[^?]*\b(?:to|from|off|short of|away)\b", re.I)


_BELOW = re.compile(r"\b(?:under|below|less than|at most|no more than|sub)\b|<", re.I)
_STEP_SECONDS = re.compile(r"\d\s*(?:m?s|m?secs?|seconds?)$", re.I)


def _wants_step(question: Question) -> bool:
    """Whether it wants a step below so many seconds: "has to be under 3 s a step"."""
    times = [amount for amount in question.amounts if amount.unit == "s" and _STEP_SECONDS.search(amount.text)]
    wants = wishes_figure(question.text) and _BELOW.search(question.text) is not None
    return wants and len(times) == len(question.amounts) == 1 and question.change.empty


def asks_wanted_figure(question: Question) -> bool:
    """Whether it wants so many tokens/s of the run, or a step below so many seconds, with what is there."""
    if _wants_step(question):
        return True
    text = question.text
    wanted = _DISTANCE.search(text) or _ATTAINED.search(text)
    share = bool(wanted) and SAYS_MFU.search(text) is not None
    units = {*_RATES, "%"} if share else _RATES
    rates = [amount for amount in question.amounts if amount.unit in units and (share or not amount.before)]
    if len(rates) != 1 or not question.change.empty or question.names_money or rate_wanted(question) is not None:
        return False
    return share or wishes_figure(text) or (is_question(text) and _REACHED.search(text) is not None)
