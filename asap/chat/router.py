"""Free words as a command: what they ask by the classifier, filled with the plans and quantities that they name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from asap.answers.inquiry import Inquiry
from asap.answers.library_queries import named_families, terms
from asap.chat.answering import default_values
from asap.chat.classifier import classifier
from asap.chat.language import Command
from asap.chat.numbers import seconds
from asap.chat.slots import UNITS, Slots, read_slots
from asap.core.numbers import as_setting
from asap.hardware.instances import chips_per_node
from asap.stacks.launchers import Stack, contract_of, stack_of

SURE = 0.25
"""Score from which the first query is answered at once (``tests/chat/test_router.py`` calibrates it)."""
OFFERED = 3
_SUPPOSED = ("global_batch", "sequence_length", "chips", "slices")
_LAUNCHERS = {*get_args(Stack)} - {"settings", "fsdp"}
_COUNTED = (*_SUPPOSED, "microbatches", "micro_batch")
USUAL = ("bottleneck", "candidates", "memory")
"""Offered where words are like none of the examples."""


@dataclass(frozen=True)
class Route:
    """What free words may ask.

    Args:
        command: what they ask, where that is clear enough to answer.
        offered: what they may ask, the likeliest first.
        about: the label of the classifier.
    """

    command: Command | None
    offered: tuple[Command, ...]
    about: str


def route(text: str, inquiry: Inquiry) -> Route:
    """Read free words; raises PlanError where a plan in them is malformed."""
    slots = read_slots(text)
    scores = classifier().scores(slots.masked)
    ranked = sorted(scores, key=lambda label: -scores[label])
    first = ranked[0]
    found: list[Command] = []
    for label in ranked:
        command = fill(label, slots, text, inquiry)
        if command is not None and command not in found:
            found.append(command)
        if len(found) == OFFERED:
            break
    top = fill(first, slots, text, inquiry) if scores[first] >= SURE else None
    return Route(None if top is not None and top.name in ("record", "retract") else top, tuple(found), first)


def fill(label: str, slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    """The query of a label with what the words name; ``None`` where they lack what it needs."""
    filler = _FILLERS.get(label)
    return filler(slots, text, inquiry) if filler else Command(label)


Filler = Callable[[Slots, str, Inquiry], Command | None]


def _of_plan(name: str, default: str | None = None) -> Filler:
    def fill(slots: Slots, text: str, inquiry: Inquiry) -> Command:
        plan = next(iter(slots.plans), default if inquiry.order or default is None else "now")
        return Command(name, {"plan": plan} if plan else {})

    return fill


def _line(slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    """In the words of the run's own launcher, or of another that is named."""
    own = stack_of(inquiry.study.experiment.workload.framework)
    named = [word for word in slots.masked.lower().split() if word in _LAUNCHERS and word != own]
    of_plan = _of_plan("line", "1")(slots, text, inquiry)
    return Command("line", {**of_plan.arguments, "stack": named[-1]}) if named and of_plan else of_plan


def _explain(slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    """Of a plan; of an axis without a degree the least that splits, or each where the run splits already."""
    now = inquiry.study.plan
    if slots.axis is None or slots.plans:
        return _of_plan("explain", "1")(slots, text, inquiry)
    each = _sweep(slots, text, inquiry) if now is None or now.degree(slots.axis) > 1 else None
    return each or Command("explain", {"plan": f"{slots.axis}=2"})


def _supposed(name: str, default: str | None = None) -> Filler:
    """Of a plan, or of the run with the settings or on the hardware that the words suppose."""
    return lambda slots, text, inquiry: (
        (_what_if(slots, text, inquiry) if slots.supposed or slots.hardware else None)
        or _of_plan(name, default)(slots, text, inquiry)
    )


def _compare(slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    plans = slots.plans or ("now", *(str(rank) for rank in range(1, len(inquiry.order) + 1)))
    if len(plans) == 1:
        plans = ("now" if plans[0] == "1" else "1", *plans)
    return Command("compare", {"plans": plans[:8]}) if len(plans) > 1 else None


def _what_if(slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    arguments: dict[str, Any] = {}
    plan = next(iter(slots.plans), "now")
    for name in _SUPPOSED:
        value = _value(name, slots, inquiry)
        if value is not None:
            arguments[name] = value
    if slots.hardware:
        arguments.pop("chips", None)
        arguments["hardware"] = slots.hardware
    named = {
        "precision": slots.precision, "optimizer": slots.optimizer, "network": slots.network, "setting": slots.setting,
    }  # fmt: skip
    arguments |= {name: value for name, value in named.items() if value}
    microbatches, sizes = _value("microbatches", slots, inquiry), slots.counts.get("micro_batch", ())
    core = contract_of(inquiry.study.experiment.workload.framework).of_core
    remat = "minimal" if slots.remat == "selective" and not core else slots.remat  # as others than Megatron mean it
    settings = [f"microbatches={microbatches}" if microbatches else "", f"remat={remat}" if remat else ""]
    settings += [f"micro_batch={as_setting(size)}" for size in sizes[-1:]]
    settings += [one for one in slots.supposed if not (remat and one.startswith("remat="))]
    said = " ".join(dict.fromkeys(part for part in settings if part))
    plan = " ".join(part for part in ("" if plan == "now" and said else plan, said) if part)
    if plan != "now":
        arguments["plan"] = plan
    if not arguments or (set(arguments) == {"plan"} and not said and plan.isdigit()):
        return None
    return Command("what_if", arguments)


def _value(name: str, slots: Slots, inquiry: Inquiry) -> int | None:
    """A count, what runs now and so many more, or what runs now times a factor."""
    study, work = inquiry.study, inquiry.study.experiment.workload
    now = {
        "global_batch": work.global_batch,
        "sequence_length": work.sequence_length,
        "chips": study.slice.devices if study.slice else None,
        "slices": study.slice.slices if study.slice else None,
        "microbatches": study.plan.microbatches if study.plan else None,
    }[name]
    counted = "nodes" if name == "chips" and slots.counts.get("nodes") else name
    if slots.counts.get(counted):
        each = chips_per_node(study.slice.chip) if counted == "nodes" and study.slice else 1
        base = (now or 0) if counted in slots.more else 0
        return round(base + slots.counts[counted][-1] * each) if each else None
    factor = slots.factors.get(name, slots.factors.get("nodes") if name == "chips" else None)
    return round(now * factor) if factor and now else None


def _sweep(slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    several = [(len(values), name) for name, values in slots.counts.items() if name in _COUNTED]
    if several and max(several)[0] > 1:
        name = max(several)[1]
        return Command("sweep", {"vary": name, "values": tuple(map(as_setting, slots.counts[name]))})
    noun = slots.axis or next((noun for noun in slots.nouns if noun in (*_SUPPOSED, "microbatches", "remat")), None)
    if noun is None or default_values(noun, inquiry) == ():
        return None
    return Command("sweep", {"vary": noun})


def _solve(slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    plan = {"plan": slots.plans[0]} if slots.plans else {}
    target = next((seconds(slots.counts[unit][0], unit) for unit in ("s", "ms") if slots.counts.get(unit)), None)
    if "time" in slots.factors and (step := inquiry.predictions([inquiry.now])[0].step_time) is not None:
        target = float(f"{slots.factors['time'] * step.value:.3g}")
    if target is not None:
        find = "chips" if {"chips", "nodes"} & {*slots.nouns} else "step_time"
        return Command("solve", {"find": find, "target": target})
    if (mfu := _mfu(slots, text, inquiry)) is not None:
        return Command("solve", {"find": "mfu", "target": mfu})
    goals = {"microbatches": "microbatch", "global_batch": "batch", "sequence_length": "sequence", "chips": "chips"}
    found = next((goal for noun, goal in goals.items() if noun in slots.nouns), None)
    return None if found is None else Command("solve", {"find": found} | plan)


def _mfu(slots: Slots, text: str, inquiry: Inquiry) -> float | None:
    """An MFU that is named, or that a rate in TFLOP/s per chip comes to."""
    if slots.counts.get("%") and "mfu" in text.lower():
        return slots.counts["%"][-1] / 100
    peaks = inquiry.study.slice.chip.peak_flops if inquiry.study.slice else {}
    peak, rates = peaks.get("bf16") or peaks.get("fp16"), slots.counts.get("TFLOP/s")
    return float(f"{rates[-1] * 1e12 / peak:.3g}") if peak and rates else None


def _plausible(slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    plan = {"plan": slots.plans[0]} if slots.plans else {}
    for unit in UNITS:
        if slots.counts.get(unit):
            value = slots.counts[unit][0]
            metric = {"tokens/s": "throughput", "s": "step_time", "ms": "step_time"}.get(unit)
            mfu = _mfu(slots, f"{text} mfu", inquiry) if unit in ("%", "TFLOP/s") else None
            metric, scaled = (metric, seconds(value, unit)) if mfu is None else ("mfu", mfu)
            if metric is None:
                return None
            return Command("plausible", {"metric": metric, "value": scaled} | plan)
    return None


def _operation(slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    return Command("operation", {"name": slots.operations[0]}) if slots.operations else Command("operations")


def _define(slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    said = f" {text.lower().strip('?!. ')} ".replace("?", " ")
    named = [term for term in terms() if f" {term} " in said]
    return Command("define", {"term": max(named, key=len)}) if named else None


def _words(name: str) -> Filler:
    return lambda slots, text, inquiry: Command(name, {"words": " ".join(text.split())[:400]})


def _worth(slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    named: dict[str, Any] = {"plan": slots.plans[0]} if slots.plans else {}
    if slots.counts.get("price"):
        named["price"] = slots.counts["price"][0]
    if slots.counts.get("steps"):
        named["steps_to_go"] = round(slots.counts["steps"][0])
    return Command("worth", named)


def _record(slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    """The command that would put on record what the words may state; it is offered, never run."""
    plan = next(iter(slots.plans), "now")
    for unit in ("s", "ms"):
        if slots.counts.get(unit):
            arguments: Mapping[str, Any] = {"what": "step_time", "value": slots.counts[unit][-1], "unit": unit}
            return Command("record", {"plan": plan, **arguments})
    if (mfu := _mfu(slots, text, inquiry)) is not None:
        return Command("record", {"plan": plan, "what": "mfu", "value": 100 * mfu, "unit": "%"})
    if slots.network:
        return Command("record", {"what": "network", "about": slots.network})
    died = slots.plans or {"memory", "oom"} & {*text.lower().split()}
    return Command("record", {"what": "out_of_memory", "plan": plan}) if died else None


def _opinion(slots: Slots, text: str, inquiry: Inquiry) -> Command | None:
    return _compare(slots, text, inquiry) if slots.plans else Command("explain")


_FILLERS: dict[str, Filler] = {
    "explain": _explain,
    "predict": _supposed("predict", "1"),
    "memory": _supposed("memory"),
    "line": _line,
    "verify": _of_plan("verify", "1"),
    "worth": _worth,
    "compare": _compare,
    "what_if": _what_if,
    "sweep": _sweep,
    "solve": _solve,
    "plausible": _plausible,
    "operation": _operation,
    "define": _define,
    "notes": _words("notes"),
    "ideas": lambda slots, text, inquiry: (
        Command("ideas", {"words": ", ".join(named)}) if (named := named_families(text)) else None
    ),
    "record": _record,
    "retract": lambda slots, text, inquiry: Command("facts"),
    "opinion": _opinion,
    "greeting": lambda slots, text, inquiry: Command("help"),
    "outside": lambda slots, text, inquiry: None,
}
