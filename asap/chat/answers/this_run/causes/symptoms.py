"""How a bottleneck shows itself: "how would I see that HBM is the problem?"; then what this run shows."""

import re
from dataclasses import dataclass

from asap.chat.answers.this_run.run import bottleneck
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import asks_how_to_tell

_PROBLEM = re.compile(
    r"\b(?:if|whether|that) (?:it is|it's|that is|that's|this is)\b|\b(?:bound|bottleneck\w*|limit\w*"
    r"|the problem|the culprit|to blame|starv\w*|the issue|overhead|stall\w*"
    r"|throttl\w*|(?:is|are) (?:too )?slow|hold\w* us back|saturat\w*|too slow|wait\w* (?:for|on))\b",
    re.I,
)


@dataclass(frozen=True)
class Symptom:
    """A bottleneck, the words that name it, and what a profile shows of it."""

    named: re.Pattern[str]
    seen: str


def _symptom(words: str, seen: str) -> Symptom:
    return Symptom(re.compile(rf"\b(?:{words})\b", re.I), seen)


SYMPTOMS = (
    _symptom(
        r"host memory|host transfers?|offload\w*|pcie",
        "Bound by copies to host memory: `copy-start` and `copy-done` are among the longest operations"
        " (asap profile ops LOG_DIR).",
    ),
    _symptom(
        r"hbm|memory[- ](?:bandwidth|bound)|bandwidth of (?:the )?(?:hbm|memory)",
        "Bound by HBM bandwidth: the longest operations are marked hbm and reach most of its bandwidth and little of"
        " the peak FLOP/s (asap profile roofline LOG_DIR). Twice the batch per chip takes less than twice as long.",
    ),
    _symptom(
        r"network|communicat\w+|collectives?|ici|dcn|nvlink|infiniband|ib|roce|efa|fabric|interconnect|all-(?:reduce|gather|to-all)",
        "Bound by communication: collectives that nothing hides take much of the step (asap profile kpis LOG_DIR, by"
        " kind of collective). With fewer devices on their axis the share falls.",
    ),
    _symptom(
        r"input|data ?load\w*|dataload\w*|data pipeline",
        "Bound by input: the device waits at the start of each step, and the step is shorter with synthetic data"
        " (asap profile kpis LOG_DIR, input).",
    ),
    _symptom(
        r"launch\w*|host|cpu|python|dispatch",
        "Bound by the host: the device is idle between short kernels, and a larger batch per chip hardly lengthens the"
        " step (asap profile kpis LOG_DIR, idle; asap trace replay, host-bound).",
    ),
    _symptom(
        r"compute|flops?|mxu|matmuls?|tensor cores?",
        "Bound by compute: matrix multiplications take most of the step at a high share of the peak FLOP/s, and the"
        " device is hardly idle (asap profile roofline LOG_DIR). Less recomputation, lower precision, more chips help.",
    ),
)
"""The first that a text names counts."""


def symptom_in(question: Question) -> Symptom | None:
    """What a question asks how to recognise."""
    if not (asks_how_to_tell(question.text) and _PROBLEM.search(question.text)):
        return None
    return next((symptom for symptom in SYMPTOMS if symptom.named.search(question.text)), None)


def symptoms(conversation: Conversation, answer: ReplyBuilder, question: Question, symptom: Symptom) -> None:
    """What would show it, and what holds this run back."""
    answer.add(symptom.seen, "This run:")
    bottleneck(conversation, answer, question)
