"""The exact language of the chat: one line, one query with its arguments. ``grammar.lark`` is what it takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asap.answers.plan_names import without_micro_batch
from asap.chat.numbers import number, seconds
from asap.core.errors import UsageError
from asap.core.text import plain
from asap.plans.axes import axis_of

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

LONGEST = 4000
RUN_FIELDS = {
    "batch": "global_batch", "global_batch": "global_batch", "gbs": "global_batch", "seq_len": "sequence_length",
    "sequence": "sequence_length", "sequence_length": "sequence_length", "context_length": "sequence_length",
    "hardware": "hardware", "on": "hardware", "chips": "chips", "gpus": "chips", "devices": "chips",
    "slices": "slices", "precision": "precision", "optimizer": "optimizer", "network": "network",
    "setting": "setting",
}  # fmt: skip
"""Words for what a supposed run says beside its plan. ``seq`` is an axis where its degree is small."""
LARGEST_DEGREE = 512
"""Above it ``seq=16k`` is the length of a sequence, and no degree of context parallelism."""
GOALS = {"seq": "sequence", "step": "step_time"}
OUTCOMES = {"oom": "out_of_memory"}
SESSION = ("help", "history", "export", "cost", "model", "try", "quit")
"""Commands that are of the session, and ask no query."""
SPOKEN = {"now": "now", "current": "now", "baseline": "now"}


@dataclass(frozen=True)
class Command:
    """What a line asks.

    Args:
        name: of a query of :mod:`asap.answers.registry`, or one of ``SESSION``.
        arguments: of the query, in its names.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def parse(text: str) -> Command | None:
    """The command that a line is; ``None`` where it is none.

    Raises:
        UsageError: it is one, and a value in it cannot be read.
    """
    from lark.exceptions import UnexpectedInput

    if len(text) > LONGEST:
        return None
    try:
        tree = _parser().parse(text.strip().rstrip("."))
    except UnexpectedInput:
        return None
    return _command(tree.children[0])


@cache
def _parser() -> "Lark":
    from lark import Lark

    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="earley", lexer="dynamic", maybe_placeholders=False)


def nearest(word: str, verbs: Mapping[str, object]) -> str | None:
    """The verb that a misspelt word may be."""
    return next(iter(get_close_matches(word.lower().lstrip("/"), verbs, n=1, cutoff=0.7)), None)


def _command(tree: Any) -> Command:
    rule = str(tree.data)
    plans, tokens = [_plan(one) for one in tree.find_data("plan")][::-1], _tokens(tree)
    match rule:
        case "why" | "why_not":
            return Command("explain", _given(plan=plans))
        case "predict" | "memory" | "verify":
            return Command(rule, _given(plan=plans))
        case "compare":
            return Command("compare", {"plans": tuple(_plan(one) for one in tree.children if _is(one, "plan"))})
        case "line":
            return Command(
                "line",
                _given(plan=plans)
                | _token(tokens, "STACK", "stack", str.lower)
                | _token(tokens, "WHOLE", "command", bool),
            )
        case "worth":
            return Command("worth", _given(plan=plans) | _options(tree))
        case "candidates" | "operations":
            return Command(rule, _token(tokens, "COUNT", "limit", int))
        case "next_test":
            return Command("next_test")
        case "what_if":
            return _what_if(tree)
        case "sweep":
            return _sweep(tree, tokens)
        case "solve":
            return Command("solve", _given(plan=plans) | _solve(tree, tokens))
        case "plausible":
            return Command("plausible", _given(plan=plans) | _plausible(tree, tokens))
        case "operation":
            return Command("operation", {"name": tokens["OPERATION"].strip().rstrip("?")})
        case "trace":
            return Command("trace", {"changes": tuple(map(str, tree.children))} if tree.children else {})
        case "precedents" | "notes" | "ideas":
            return Command(rule, _token(tokens, "WORDS", "words", str))
        case "define":
            return Command("define", {"term": tokens["WORDS"].rstrip("? ")})
        case "ran":
            return Command("record", {"plan": plans[0]} | _measured(tree, tokens))
        case "happened":
            word = tokens["OUTCOME"].lower()
            return Command("record", {"what": OUTCOMES.get(word, word), "plan": plans[0]})
        case "runs":
            return _runs(plans[0], [_pair(one) for one in tree.find_data("change")])
        case "limit":
            return _limit(tokens)
        case "forget":
            return Command("retract", {"number": int(tokens["COUNT"])})
        case "help":
            return Command("help", _token(tokens, "VERB", "verb", str.lower))
        case "model":
            return Command("model", _token(tokens, "WORDS", "name", str))
        case "try":
            return Command("try", _given(plan=plans))
        case _:
            return Command(rule)


def _is(child: Any, rule: str) -> bool:
    return getattr(child, "data", None) == rule


def _tokens(tree: "Tree[Token]") -> dict[str, str]:
    return {kind: str(child) for child in tree.children if isinstance(kind := getattr(child, "type", None), str)}


def _given(plan: list[str]) -> dict[str, Any]:
    return {"plan": plan[0]} if plan else {}


def _token(tokens: Mapping[str, str], kind: str, name: str, read: Any) -> dict[str, Any]:
    return {name: read(tokens[kind])} if kind in tokens else {}


def _plan(tree: Any) -> str:
    words = [
        "=".join(_pair(child)) if _is(child, "change") else SPOKEN.get(str(child).lower(), str(child))
        for child in tree.children
    ]
    return " ".join(words)


def _pair(tree: Any) -> tuple[str, str]:
    text = str(tree.children[0])
    for mark in ("=", ":", None):
        if mark is None or mark in text:
            key, _, value = text.partition(mark) if mark else (*text.split(None, 1)[:1], "", text.split(None, 1)[-1])
            return key.strip(), value.strip()
    raise AssertionError(text)


def _what_if(tree: Any) -> Command:
    arguments: dict[str, Any] = {}
    of_plan: list[str] = []
    for child in tree.children:
        if not _is(child, "change"):
            name = "hardware" if child.type == "CHIPS" else "plan"
            arguments[name] = SPOKEN.get(str(child).lower(), str(child))
            continue
        key, value = _pair(child)
        if (name := run_field(key, value)) is None:
            of_plan.append(f"{key}={value}")
        elif name in NUMBERS and number(value) is None:
            hint = "give the new value itself, as in what if batch=512; run shows the present one"
            raise UsageError("needs a number", where=plain(f"{key}={value}", 40), hint=hint)
        else:
            arguments[name] = number(value) if name in NUMBERS else value
    if of_plan:
        base = arguments.get("plan", "now")
        arguments["plan"] = " ".join(of_plan) if base == "now" else f"{base} {' '.join(of_plan)}"
    return Command("what_if", arguments)


NUMBERS = ("global_batch", "sequence_length", "chips", "slices")


def run_field(key: str, value: str = "") -> str | None:
    """The field of a supposed run that a word names; ``None`` for a word of a plan."""
    word = key.lower().lstrip("-").replace("-", "_")
    if word == "seq" and value and (found := number(value)) is not None and found > LARGEST_DEGREE:
        return "sequence_length"
    return RUN_FIELDS.get(word)


def _sweep(tree: Any, tokens: Mapping[str, str]) -> Command:
    values = [str(child.children[0]) for child in tree.children if _is(child, "value")]
    name = tokens.get("NAME")
    for child in tree.children:
        if _is(child, "change"):
            name, first = _pair(child)
            values = [first, *values]
    assert name is not None
    vary = varied(name, values)
    values = [str(round(n)) if vary in NUMBERS and (n := number(one)) else one for one in values]
    return Command("sweep", {"vary": vary, **({"values": tuple(values)} if values else {})})


def varied(word: str, values: list[str]) -> str:
    """What a sweep varies, in the names of the query."""
    place, sized = axis_of(word), without_micro_batch(f"{word}=1")[1]
    other = "micro_batch" if sized else place[1] if place else word.lower()
    return run_field(word, values[0] if values else "") or other


def _figure(tree: Any) -> tuple[float | None, str | None]:
    found = next(tree.find_data("figure"), None)
    if found is None:
        return None, None
    tokens = _tokens(found)
    value, unit = number(tokens["NUMBER"]), tokens.get("UNIT")
    if unit is None and value is not None and _tokens(tree).get("METRIC", "").lower() in ("mfu", "hbm"):
        return (100 * value if value <= 1 else value), "%"
    return value, unit


def _solve(tree: Any, tokens: Mapping[str, str]) -> dict[str, Any]:
    goal, (value, unit) = tokens["GOAL"].lower(), _figure(tree)
    target = None if value is None else value / 100 if unit == "%" else seconds(value, unit) if unit else value
    return {"find": GOALS.get(goal, goal), **({"target": target} if target is not None else {})}


def _plausible(tree: Any, tokens: Mapping[str, str]) -> dict[str, Any]:
    value, unit = _figure(tree)
    if value is None:
        raise UsageError("needs a figure", where="plausible", hint="plausible 38s, plausible 45% mfu")
    if unit == "%":
        return {"metric": "mfu", "value": value / 100}
    if unit and unit.lower() == "tokens/s":
        return {"metric": "throughput", "value": value}
    return {"metric": "step_time", "value": seconds(value, unit or "s")}


def _measured(tree: Any, tokens: Mapping[str, str]) -> dict[str, Any]:
    value, unit = _figure(tree)
    metric, unit = tokens.get("METRIC", "").lower(), (unit or "s")
    what = "step_time"
    if unit == "%":
        what = {"mfu": "mfu", "hbm": "hbm_share", "slower": "relative", "faster": "relative"}.get(metric, "")
        unit = f"% {metric}" if what == "relative" else "%"
    elif unit in ("GiB", "GB"):
        what = "hbm_bytes"
    elif unit.lower() == "tokens/s":
        what, unit = "throughput", "tokens/s"
    elif unit == "x":
        what = "relative"
    if not what:
        raise UsageError("% of what?", where="ran", hint="ran 1 = 9% slower, ran now = 38% mfu, ran now = 91% hbm")
    return {"what": what, "value": value, "unit": unit}


def _options(tree: Any) -> dict[str, Any]:
    names = {"price": "price", "steps": "steps_to_go", "currency": "currency"}
    found: dict[str, Any] = {}
    for rule, name in names.items():
        for option in tree.find_data(rule):
            text = str(option.children[0])
            found[name] = text if rule == "currency" else number(text)
    return found


def _runs(plan: str, pairs: list[tuple[str, str]]) -> Command:
    fields = [run_field(key, value) for key, value in pairs]
    if [key for key, _ in pairs] == ["network"]:
        return Command("record", {"what": "network", "about": pairs[0][1]})
    if fields in (["global_batch"], ["sequence_length"]):
        what = "batch" if fields == ["global_batch"] else "sequence"
        return Command("record", {"what": what, "value": number(pairs[0][1])})
    if any(fields):
        raise UsageError("takes a plan, or a batch, a sequence or a network alone", where="runs", hint="runs batch=512")
    return Command("record", {"what": "incumbent", "plan": plan})


def _limit(tokens: Mapping[str, str]) -> Command:
    about, place = tokens["NAME"], axis_of(tokens["NAME"])
    about = place[1] if place else about.lower()
    bound = {"<=": "most", "<": "most", ">=": "least"}.get(tokens.get("BOUND", ""))
    value = int(tokens["COUNT"]) if "COUNT" in tokens else None
    if value is not None and place is None:
        raise UsageError("only the degree of an axis has a bound", where=plain(about, 40), hint="limit model<=8")
    if value is not None and tokens.get("BOUND") == "<":
        value -= 1
    known = {"value": value, "bound": bound}
    return Command("record", {"what": "constraint", "about": about} | {k: v for k, v in known.items() if v is not None})
