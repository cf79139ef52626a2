"""What predictions take for granted: "did you scale the batch with the chips?", "are you assuming 8k?"."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.things import Thing, things_named
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.settings.unmodelled import says_in_use
from asap.models import Workload
from asap.prediction.predict_study import expect
from asap.study.study import Study

_ASKED = re.compile(
    r"\b(?:did|have|had) (?:you|u)\b[^.?!]*\b(?:chang|increas|rais|scal|grow|grew|assum|keep|kept|hold|held|vary|varied"
    r"|adjust|fix|account|double)\w*\b|\bare (?:you|u) (?:assum|keep|hold|scal|chang|vary|account|count)\w*ing\b",
    re.I,
)
_SWITCHED = re.compile(
    r"\b(?:is|are|was|were)\b[^.?!]*\b(?:assumed|included|taken|on|off|enabled|used|modelled|considered|accounted|balanced"
    r"|in (?:your|the) (?:numbers?|figures?|predictions?))\b"
    r"|\b(?:do|did) (?:you|u)\b[^.?!]*\b(?:assum\w*|tak\w*|expect\w*|consider\w*|account\w*|model\w*|count\w*)\b"
    r"|\bare (?:you|u) (?:assum|tak|expect|consider|account|model|count|includ)\w*ing\b"
    r"|^\W*(?:(?:and|so|ok|btw|with)\W+)*[\w-]+(?: [\w-]+)? (?:on|off|enabled|disabled|included)\W*\?"
    r"|\b(?:you(?:'re| are)?|u) assum\w*|\bassuming\b|\bwith or (?:without|with no)\b|\bon or off\b"
    r"|\b(?:is|are|does|do|did|was|were)\b[^.?!]*(?:\.\d[^.?!]*)*\b(?:includ|incl|exclud|excl|count|contain|cover)\w*\b",
    re.I,
)
"""Asks whether something is taken for granted."""
_SUMMED = re.compile(
    r"\b(?:bf16|fp16|fp32|float32)[- ](?:grad\w*[- ])?(?:all-?)?reduc\w*"
    r"|\b(?:all-?)?reduc\w*(?: \w+)? in (?:bf16|fp16|fp32)\b",
    re.I,
)
"""The precision of a sum, and not of matrix products."""
_KNOWN: dict[Thing, str] = {"batch": "global batch", "sequence": "sequence length"}


@dataclass(frozen=True)
class Assumption:
    """Something that predictions take for granted: the words for it, and what is taken of a run."""

    words: re.Pattern[str]
    said: Callable[[Study], str]


def _work(study: Study) -> Workload:
    return study.experiment.workload


def _switch(on: bool | None) -> str:
    return "not on record, so it is taken as off" if on is None else "on" if on else "off"


def _assumption(words: str, said: Callable[[Study], str]) -> Assumption:
    return Assumption(re.compile(rf"\b(?:{words})\b", re.I), said)


def _recomputed(study: Study) -> str:
    plan = study.plan
    if plan is not None and plan.remat is not None:
        return f"Recomputation (activation checkpointing): {plan.remat}."
    taken = [note for note in (expect(study, [plan])[0].notes if plan else ()) if "rematerialisation" in note]
    return taken[0] if taken else "Recomputation (activation checkpointing) is not on record."


_ASSUMPTIONS = (
    _assumption(r"activation (?:checkpoint|recomput)\w*|remat\w*|recomput\w*", _recomputed),
    _assumption(
        r"(?:first|compil\w*|warm-?up|start-?up) steps?|compilation|jit(?:ting)?|warm-?up",
        lambda study: "A step time is of a steady step: no compilation, no warm-up, no first step.",
    ),
    _assumption(r"(?:torch[. ]?)?compiled?", lambda study: f"torch.compile: {_switch(_work(study).compiled)}."),
    _assumption(
        r"checkpoint(?:s|ing)?(?! of activations)|ckpts?|saving|evals?|evaluation|data ?load\w*|input pipeline|logging",
        lambda study: "A step time is of the training step alone: no checkpoint, no evaluation, no waiting for data.",
    ),
    _assumption(
        r"(?:flash|splash|fused)[- ]?att\w*|att(?:ention|n)? kernels?|sdpa",
        lambda study: f"Attention kernel: {_work(study).attention or 'not on record, so a flash kernel is taken'}.",
    ),
    _assumption(
        r"schedules?|gpipe|1f1b",
        lambda study: "A pipeline is taken to run 1F1B, interleaved where it has virtual stages; XLA's stacks run it as"
        " one loop over all iterations.",
    ),
    _assumption(
        r"overlap\w*|async\w*|latency hiding",
        lambda study: "Of each collective, as much is hidden behind compute as published runs of this kind of stack and"
        " chip hide; the rest counts as exposed. Ask for the collectives to see both.",
    ),
    _assumption(
        r"mega-?blox|grouped[- ]?(?:gemms?|matmuls?)|(?:sparse|ragged)[_ ](?:matmul|dot)|drop(?:less|ping)"
        r"|token[- ]drop\w*",
        lambda study: (
            f"Experts are computed with a capacity factor of {_work(study).capacity_factor:g}, dropped tokens and empty"
            " slots included."
            if _work(study).capacity_factor
            else "Experts are taken as dropless, in grouped products: a token is computed once by each of its experts."
        ),
    ),
    _assumption(
        r"balanc\w*|routing|router",
        lambda study: "Experts are taken to be balanced: each gets an equal share of the tokens.",
    ),
    _assumption(
        r"sxm|pci-?e|nvl\d*|(?:gpu|chip|machine) type|form factor",
        lambda study: f"Hardware: {f'{study.slice.devices} of {study.slice.chip.title}' if study.slice else 'none'}.",
    ),
    _assumption(
        r"bubbles?|host|launch\w*|optimi[sz]er (?:step|update|time)|hbm traffic|collectives?|communication",
        lambda study: "A predicted step counts compute, HBM traffic, exposed collectives, the pipeline bubble, the"
        " optimizer's update and the host; not the input, checkpoints, evaluation, or a slow device.",
    ),
    _assumption(
        r"precision|bf16|fp8|fp32",
        lambda study: f"Matrix products are taken in {_work(study).precision or 'bf16'}.",
    ),
    _assumption(r"optimi[sz]er|adamw?", lambda study: f"Optimizer: {_work(study).optimizer or 'not on record'}."),
)  # fmt: skip


def assumption_asked(question: Question) -> Assumption | None:
    """What it asks to be taken for granted; ``None`` where it asks of none that is known here."""
    text = question.text
    if (
        not _SWITCHED.search(text)
        or says_in_use(text)
        or question.refs.ranked
        or question.refs.written
        or question.change.counts
    ):
        return None
    left = _SUMMED.sub(" ", text)
    return next((one for one in _ASSUMPTIONS if one.words.search(left)), None)


def say_assumption(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What is taken for the run as it is on record."""
    if (found := assumption_asked(question)) is not None:
        answer.complete = True
        answer.add(found.said(conversation.study))
        answer.add("If your run does otherwise, its own step tells: state it, and predictions start from it.")


def asks_assumed(question: Question) -> bool:
    """Whether it asks what was done about the batch or the sequence."""
    return _ASKED.search(question.text) is not None and bool(set(things_named(question.text)) & _KNOWN.keys())


def assumed(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The figures that hold for every plan, unless a question says otherwise."""
    workload = conversation.study.experiment.workload
    known = {"batch": workload.global_batch, "sequence": workload.sequence_length}
    answer.complete = True
    answer.add(*(f"{name}: {known[thing] or 'not on record'}" for thing, name in _KNOWN.items()))
    answer.add(
        "Every plan is evaluated with that, as the run has it: neither follows the plan or the chips unless you ask so,"
        ' as in "what if 1024 chips and batch 512".'
    )
