"""How FLOPs and MFU are counted, and why another tool has another figure for the same step."""

import re

from asap.chat.answers.proposals.measurements import prediction_check
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.throughput import model_flops_of
from asap.chat.answers.this_run.components import SCORES, flops_shares
from asap.chat.answers.this_run.rates.efficiency import efficiency
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.completeness import is_complete
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import asks_why
from asap.core.units import format_percent, format_rate

_FLOPS = re.compile(r"\b(?:mfu|hfu|(?:[tp]era-?|[tp]-?)?flops?(?:/s(?:ec)?)?|6 ?\*? ?n ?\*? ?d)\b", re.I)
_MASK = re.compile(
    r"\bembeddings?\b|\blogits\b|\bl[mn][- ]head\b|\bcausal\w*\b|\battention mask\w*\b|\bmask(?:ed|ing)\b", re.I
)
_HOW = re.compile(
    r"\bhow (?:do|did|does|is|are|was|were) [^.?!]*\b(?:count|calculat|comput|defin|deriv|work|measur|arriv)\w*"
    r"|\b(?:do|does|did|is|are)(?:n't)? [^.?!]*\b(?:count|includ|assum|halv|account|ignor|divid|exclud)\w*"
    r"|\bin (?:your|the|that) (?:mfu|hfu|flops?)\b"
    r"|\b(?:formula|convention|half or (?:the )?(?:full|whole)|(?:full|whole) or half|6 ?\*? ?n ?\*? ?d)\b",
    re.I,
)
_DIFFERS = re.compile(
    r"\b(?:differ\w*|something else|(?:an)?other (?:numbers?|figures?|values?)|not (?:the same|match\w*|agree\w*)"
    r"|mismatch\w*|disagree\w*|discrepan\w*|deviat\w*|off from|don't add up)\b|n't (?:match|agree|add up|line up)"
    r"|\bthan (?:you|yours|your \w+|what you)\b|\b(?:vs\.?|versus|and|but) (?:you|yours|your \w+)\b"
    r"|\b(?:you|yours|your \w+) (?:\w+ )?(?:says?|said|shows?|reports?|gives?|have|has)\b",
    re.I,
)
"""Sets another figure beside the one that is shown here."""
_BELOW = re.compile(
    r"\b(?:less|lower|low|only|below|short of|worse|behind|far (?:from|below)|just|bad|poor|half|(?:not|n't)"
    r" (?:get|reach|hit|see))\b",
    re.I,
)
_ASKS_SIZE = re.compile(r"\bhow (?:much|many)\b|\bwhat (?:share|part|fraction)\b", re.I)


def asks_counting(question: Question) -> bool:
    """Whether it asks what counts as FLOPs: "is attention causal in your MFU?"."""
    text = question.text
    named = _FLOPS.search(text) is not None or _MASK.search(text) is not None
    return named and _HOW.search(text) is not None and not _ASKS_SIZE.search(text) and not question.change.counts


def asks_difference(question: Question) -> bool:
    """Whether it asks why the MFU or the FLOP/s of somebody else are others than those here."""
    text = question.text
    return _FLOPS.search(text) is not None and _DIFFERS.search(text) is not None and asks_why(text)


def asks_shortfall(question: Question) -> bool:
    """Whether it asks why the MFU is below another one: "the paper has 55 % MFU, why do we see less?"."""
    text, plain = question.text, not question.refs.ranked and not question.change.counts
    return plain and _FLOPS.search(text) is not None and _BELOW.search(text) is not None and asks_why(text)


def counting(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What counts, what the causal mask leaves of attention in this run, and over which peak."""
    answer.complete = True
    answer.add(
        "MFU and FLOP/s count what the model needs, forward and backward: the products with the weights, logits"
        " included and the lookup of embeddings not, and attention. What is computed again does not count: HFU has"
        " that."
    )
    answer.add(*_of_attention(conversation))
    hardware = conversation.study.slice
    peak = hardware.chip.peak_flops.get("bf16") if hardware is not None else None
    if peak and hardware is not None:
        answer.add(f"MFU is over the dense bf16 peak of {hardware.chip.title}, {format_rate(peak, 'FLOP/s')}.")


def difference(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """How FLOPs are counted here, what needs no counting, and how far a measurement on record is off."""
    counting(conversation, answer, question)
    answer.add(
        "A tool that counts attention in full, recomputation, another parameter count or another peak has another"
        " figure for the same step. Compare by step time or tokens/s, which nobody counts differently."
    )
    if conversation.evidence:
        own, answer.lines = answer.lines, []
        prediction_check(conversation, answer, question)
        answer.lines = [*own, *answer.lines]


def shortfall(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Where the step loses MFU; the other figure may count otherwise."""
    efficiency(conversation, answer, question)
    answer.add(
        'The other figure may count FLOPs otherwise, ask "how do you count FLOPs?"; tokens/s compare as they are.'
    )


def _of_attention(conversation: Conversation) -> list[str]:
    """The half of attention's products that is counted, as a share of the FLOPs, and the MFU with both halves."""
    study = conversation.study
    half = "Of attention's scores the half that a causal mask leaves is counted, and less in layers with a window"
    if study.plan is None or study.experiment.model is None or not is_complete(study):
        return [f"{half}."]
    found = prediction_of(conversation, study.plan)
    flops = model_flops_of(study, found)
    if not flops or found.mfu is None:
        return [f"{half}."]
    share = flops_shares(study.experiment.model, study.experiment.workload.tokens or 0, flops)[SCORES]
    mfu = found.mfu.value
    whole = f"counted in full, an MFU of {format_percent(mfu)} would read {format_percent(mfu * (1 + share))}"
    return [f"{half}: {format_percent(share)} of the FLOPs of this run; {whole}."]
