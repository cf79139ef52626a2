"""Predictions and proposals in short phrases, shared by all reports. Plain text, not escaped."""

import math
from collections.abc import Callable, Iterable
from typing import get_args

from asap.answers.figure import CHANGE
from asap.core.units import (
    Provenance,
    Quantity,
    change_interval,
    counted,
    format_bytes,
    format_change,
    format_odds,
    format_percent,
    format_rate,
    format_seconds,
    significant,
)
from asap.diagnosis import Bottleneck
from asap.plans import Plan
from asap.plans.axes import MEANINGS, Axis
from asap.prediction.prediction import MemoryPrediction, Prediction
from asap.proposals import Proposal
from asap.proposals.ideas import Idea, Standing
from asap.proposals.typed_change import typed_or_none
from asap.reports.analysis import Analysis
from asap.reports.profile_facts import UNKNOWN, resource_name
from asap.study.start import ASSUMED

_WRITERS: dict[str, Callable[[float], str]] = {
    "s": format_seconds,
    "bytes": format_bytes,
    "fraction": format_percent,
    "odds": format_odds,
    CHANGE: lambda value: format_change(1 + value),
    "FLOP/s": lambda value: format_rate(value, "FLOP/s"),
    "FLOP": lambda value: format_rate(value, "FLOP"),
    "bytes/s": lambda value: format_rate(value, "B/s"),
    "tokens/s": lambda value: f"{significant(value)} tokens/s",
    "steps": lambda value: counted(round(value), "step"),
    "parameters": lambda value: f"{significant(value / 1e9)} B" if value >= 1e9 else f"{significant(value / 1e6)} M",
    "1": significant,
}


def amount(value: float, unit: str) -> str:
    """A value with its unit, rounded: ``2.52 ms``, ``14.0 GiB``, ``-16.9 %``."""
    write = _WRITERS.get(unit)
    return write(value) if write else f"{significant(value)} {unit}"


def written(quantity: Quantity | None, *, brief: bool = False) -> str:
    """``2.43 s (2.2 s to 2.71 s)``: with its 90 % interval, where there is one; empty where it is unknown.

    Args:
        quantity: the figure.
        brief: the interval as people write it, its unit once: ``2.43 s (2.2 to 2.71)``.
    """
    if quantity is None:
        return ""
    text = amount(quantity.value, quantity.unit)
    if quantity.low is None or quantity.high is None or quantity.low == quantity.high:
        return text
    if quantity.unit == CHANGE:
        return change_interval(1 + quantity.value, 1 + quantity.low, 1 + quantity.high)
    low, high = (amount(end, quantity.unit) for end in (quantity.low, quantity.high))
    units = {one.partition(" ")[2] for one in (text, low, high)}
    if brief and len(units) == 1:
        low, high = (end.partition(" ")[0] for end in (low, high))
    return f"{text} ({low} to {high})"


def percent_change(ratio: Quantity | None) -> str:
    """A ratio as ``-3.1 % (-45 to +70 %)``."""
    return UNKNOWN if ratio is None else change_interval(ratio.value, ratio.low, ratio.high)


def memory_phrase(prediction: Prediction) -> str:
    """HBM against capacity, predicted unless it says that it was compiled."""
    memory = prediction.memory
    if memory is None:
        return UNKNOWN
    by_compiler = ", compiled" if is_compiled(memory) else ""
    return f"{format_bytes(memory.total.value)} of {format_bytes(memory.capacity_bytes)}{by_compiler}"


def fit_mark(memory: MemoryPrediction) -> str:
    """``?`` behind HBM that may not fit, ``!`` behind what does not."""
    return {"fits": "", "may not fit": "?", "does not fit": "!"}[memory.verdict]


def is_compiled(memory: MemoryPrediction) -> bool:
    """Whether the compiler said it."""
    return memory.total.provenance is Provenance.COMPILED


def modelled_facts(analysis: Analysis) -> str:
    """``step 30.9 s, MFU 21 %, 1,060 tokens/s per chip``, where no profile says it; no step that was measured."""
    modelled, incumbent, kpis = analysis.modelled, analysis.incumbent, analysis.kpis
    if modelled is None or incumbent is None:
        return ""
    facts = [] if kpis and kpis.step_time_s else [f"step {written(incumbent.step_time)}"]
    facts += [f"MFU {format_percent(incumbent.mfu.value)}"] if incumbent.mfu else []
    each = modelled.tokens_per_second_per_chip
    facts += [f"{significant(each)} tokens/s per chip"] if each else []
    return ", ".join(facts)


def axis_legend(plans: Iterable[Plan], experts_over: Iterable[Axis] = ()) -> str:
    """What the axes of these plans mean: ``data`` is FSDP here, and plain data parallelism in MaxText. Groups of
    experts may span other axes besides. Empty where no plan has an axis."""
    plans = list(plans)
    used = [axis for axis in get_args(Axis) if any(plan.degree(axis) > 1 for plan in plans)]
    spanned = [axis for axis in ("expert", *experts_over) if axis in used]
    also = f" (each group of experts is {' x '.join(spanned)} devices)" if spanned[1:] and "expert" in used else ""
    return ", ".join(f"{axis} = {MEANINGS[axis]}{also if axis == 'expert' else ''}" for axis in used)


def baseline(analysis: Analysis) -> str:
    """What the plan is called that proposals are compared with: ``now``, or ``start`` where nothing runs yet."""
    return "start" if is_assumed(analysis) else "now"


def is_assumed(analysis: Analysis) -> bool:
    """Whether nothing runs yet, and proposals are compared with a start."""
    return analysis.experiment.provenance.get("plan") == ASSUMED


def shown_plans(analysis: Analysis) -> list[Plan]:
    """The plan that runs and the proposed ones."""
    now = [analysis.experiment.plan] if analysis.experiment.plan else []
    return [*now, *(proposal.plan for proposal in analysis.proposals)]


def incumbent_compiled(analysis: Analysis) -> list[str]:
    """What the compiler said of the plan that ran."""
    said = analysis.incumbent and analysis.incumbent.compiled
    return [f"The plan that ran, compiled: {said}"] if said else []


def bottleneck_name(analysis: Analysis) -> str:
    """``compute``, ``insufficient evidence`` …; the model's word, and said to be so, where nothing was measured."""
    if analysis.modelled is not None and analysis.diagnosis.bottleneck is Bottleneck.INSUFFICIENT_EVIDENCE:
        return f"{analysis.modelled.bottleneck} (modelled)"
    return resource_name(analysis.diagnosis.bottleneck.value)


def answered_by(analysis: Analysis) -> str:
    """Who chose the proposals."""
    model = analysis.agent_model
    if analysis.answered_by == "engine":
        return f"the engine alone, as {model} gave no answer"
    return "no language model" if model.startswith("builtin/") else f"agents on {model}"


MODELS_WORDS = "the model's words"
"""How everything that a language model wrote is marked."""
OWN_WORDS = "~ stands before what rests on no figure of the engine"


def agents_words(analysis: Analysis) -> list[tuple[str, str]]:
    """What the language model wrote of the run as a whole, by its author."""
    said = analysis.agents
    if said is None:
        return []
    proof = f" Evidence: {'; '.join(said.evidence)}." if said.evidence else ""
    lacks = f" Missing: {'; '.join(said.missing)}." if said.missing else ""
    read = f"{said.statement or ''}{proof}{lacks}".strip()
    return [(author, text) for author, text in (("The analyzer", read), ("The critic", said.summary or "")) if text]


def idea_sentence(idea: Idea) -> str:
    """An untested idea on one line: what, what it brought elsewhere, what it can bring at most, how to tell."""
    said = [f"{idea.title} ({idea.kind.value}): {idea.change}."]
    if idea.effect is not None:
        here = idea.standing is Standing.PREDICTED
        where = "Predicted step time" if here else f"Step time in {counted(idea.runs, 'run')} elsewhere"
        said.append(f"{where}: {written(idea.effect, brief=True)}.")
    said += [idea.hypothesis] if idea.hypothesis else []
    if idea.bound is not None:
        said.append(f"It touches {format_percent(idea.bound.value)} of the step and can save no more.")
    elif idea.standing is not Standing.PREDICTED:
        said.append("What it can save here must be measured.")
    by = ", by `asap optimize EXPERIMENT --evaluate run --idea` with these words" if typed_or_none(idea.change) else ""
    said += [f"Test: {idea.how}{by}."] if idea.how else []
    return " ".join(said)


IDEA = "The agent's own idea: the engine did not list it, but checked and predicted it."


def agent_prose(proposal: Proposal) -> list[str]:
    """What an agent wrote for a proposal, with both ranks and the predicted regret."""
    if proposal.prose is None:
        return [IDEA] if proposal.agents_idea else []
    regret = f", predicted regret {format_percent(math.expm1(proposal.regret.value))}" if proposal.regret else ""
    place = "its own idea" if proposal.agents_idea else f"the engine's {proposal.engine_rank}"
    return [f"The agent: {proposal.prose} (its rank {proposal.rank}, {place}{regret})"]
