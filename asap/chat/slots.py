"""What free words name: plans and quantities, by which a query is filled, and the words that are left.

A quantity is a number beside the noun that it counts; nothing is read from the way in which a sentence is built.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from asap.answers.plan_names import ZERO
from asap.chat.classifier import examples
from asap.chat.machines import Span, machines
from asap.chat.numbers import COUNTS, NOUNS, Noun, number
from asap.knowledge.index.terms import stems
from asap.levers.table import TRIALS
from asap.plans.axes import WORDS, Axis
from asap.plans.prose import plan_spans

LONGEST = 600
"""Characters of a line in free words."""
UNITS = ("s", "ms", "%", "TFLOP/s", "GiB", "tokens/s")
_FACTORS = {"doubl": 2.0, "twice": 2.0, "tripl": 3.0, "quadrupl": 4.0, "half": 0.5, "halv": 0.5}
_TIMES, _SPEEDS = {"time", "duration"}, {"fast", "faster", "speed", "throughput"}
_ORDINALS, _DIGITS = {"first": 1, "second": 2, "third": 3, "1st": 1, "2nd": 2, "3rd": 3}, ("1", "2", "3")
_RANKED = {"proposal", "proposals", "option", "options", "suggestion", "suggestions", "plan", "plans", "number",
           "candidate", "candidates", "no", "nr", "#", "config", "configuration", "vorschlag", "proposition",
           "propositions", "propuesta"}  # fmt: skip
_NOW = {"now", "today", "current", "currently", "baseline", "present", "incumbent"}
_PRECISIONS = {"fp8": "fp8", "int8": "int8", "bf16": "bf16", "fp32": "fp32", "fp16": "fp16", "float8": "fp8",
               "bfloat16": "bf16", "float32": "fp32", "float16": "fp16"}  # fmt: skip
_OPTIMIZERS = {"adamw", "adam", "adafactor", "sgd", "lion", "muon"}
_POLICIES = {"full", "minimal", "none", "selective"}
_SWITCHES = {
    **dict.fromkeys(("offload", "offloading", "offloaded"), ("offload=none", "offload=optimizer+parameters")),
    **dict.fromkeys(("sequence", "sp"), ("sequence_parallel=false", "sequence_parallel=true")),
    **dict.fromkeys(
        ("remat", "recompute", "recomputation", "checkpointing", "recomputing"), ("remat=none", "remat=full")
    ),
}
"""Settings of a plan that words switch off and on."""
_SETTINGS = {
    **{one.name.replace("_", ""): one.name for one in TRIALS},
    **dict.fromkeys(("compiling", "compilation"), "torch_compile"),
    "flashattention": "fused_attention",
    "liger": "fused_loss",
    "fusedcrossentropy": "fused_loss",
}
"""Letters of the words for a setting beside every plan, and its name."""
_OFF, _ON, _SWITCH = {"disabl", "without", "drop", "remov"}, {"enabl"}, {"turn", "switch"}
"""Stems of the verbs that switch, ``turn`` and ``switch`` with the word beside them."""
_INSTEAD = re.compile(r"\b(?:instead of|rather than|in place of|from)\s+[\w-]+", re.I)
"""What a change replaces: ``bf16 instead of fp32`` names bf16."""
_TOKEN = re.compile(
    r"(?:micro|local)[ _-]?batch(?:[ _]size)?\b|"
    r"v\d\w?-\d+\b|[a-z]\d{2,3}-\d+\b|tok(?:en)?s?/s|\d[\d,]*(?:\.\d+)?[kKM]?(?=(?:m?s|sec|gi?b|tflops?|x)?\b)(?!\.\d)|[#%$]|[^\W\d_][\w'/-]*(?:\.\d+)?",
    re.I,
)
_NETWORK = re.compile(
    r"\b((?:\d+\s*x\s*)?\d+(?:\.\d+)?\s*[GMT])([bB]?)(?i:it)?(?i:/s|ps)?\s*(?i:/|per|an?|(?:of|for|on)? each)\s*"
    r"(?i:(gpu|chip|device)|node|host|machine|server)s?\b"
)
_AXIS = re.compile(r"\b(?:(data|context|model|tensor|expert|pipeline)[- ]parallel\w*|(tp|cp|ep|pp))\b", re.I)
"""An axis that is named without a degree; sequence parallelism is a setting."""
_ANOTHER = re.compile(r"\s*(?:,|/|or|and|vs\.?|to)\s*(?P<stage>[0-3])\b", re.I)
"""A second stage of ZeRO behind a first: ``ZeRO 2 or 3``."""
_ENDS = {*NOUNS, "the", "a", "of", "and", "or", "while", "with", "for", "on", "in", "to", "at", "is"}
"""Words at which a number has found its noun, or has none behind it."""
_MORE = {"more", "extra", "additional", "another", "further", "add", "adding"}
"""Beside a count: so many on top of what runs now."""
_EACH = {"per", "each", "every"}
"""``8 per GPU`` counts no GPUs."""
_AHEAD, _BACK, _LIST = 3, 4, 12
"""Words between a number and the noun that it counts, at most; and in a list of numbers."""
_SHORTEST = 64
"""Tokens of a sequence, of which no run has fewer."""
_LARGEST = 65_536
"""Sequences of a step, of which no run has more."""
_LONG = 4096
"""``16k sequences`` are of that length: no step has so many."""


@dataclass(frozen=True)
class Slots:
    """What a line names.

    Args:
        plans: plans, ranks and ``now``, in their order.
        counts: numbers by what they count, in their order.
        factors: what is multiplied, and by how much. ``nouns``: everything countable that is named.
        more: what is counted beside what runs now.
        hardware: a chip, with a size where one is said.
        network: the rate of a node or of a chip, as ``--network`` takes it.
        precision, optimizer: named last.
        switched: settings of a plan that are switched off or on, as a plan says them.
        supposed: those, and settings that are only named, which a line that asks for a fit supposes.
        setting: one beside every plan, by its name.
        axis: named without a degree.
        operations: words that look like the name of an operation.
        masked: the line with placeholders in place of all that.
    """

    plans: tuple[str, ...]
    counts: Mapping[str, tuple[float, ...]]
    factors: Mapping[str, float]
    more: frozenset[str]
    nouns: tuple[str, ...]
    hardware: str | None
    network: str | None
    precision: str | None
    optimizer: str | None
    remat: str | None
    switched: tuple[str, ...]
    supposed: tuple[str, ...]
    setting: str | None
    axis: Axis | None
    operations: tuple[str, ...]
    masked: str


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text.lower()

    @property
    def value(self) -> float | None:
        return number(self.text)


def read_slots(text: str) -> Slots:
    """The plans and quantities of a line, of which no more than :data:`LONGEST` characters are read.

    Raises:
        PlanError: a plan in it is malformed.
    """
    text = text[:LONGEST]
    spans = [(start, end, str(plan), "zplan") for start, end, plan in plan_spans(text)]
    stages = list(ZERO.finditer(text))
    stages += [other for one in stages if (other := _ANOTHER.match(text, one.end()))]
    spans += [(*one.span(), f"zero={one['stage']}", "zplan" if stages[1:] else one.group()) for one in stages]
    rates = list(_NETWORK.finditer(text))
    replaced = {place for found in _INSTEAD.finditer(text) for place in range(*found.span())}
    spans += [(*found.span(), "", "network") for found in rates]
    tokens = [
        _Token(match.group(), match.start(), match.end()) for match in _TOKEN.finditer(text) if _apart(match, spans)
    ]
    counts: dict[str, tuple[float, ...]] = {}
    more: set[str] = set()
    new = {noun for noun, _, token in _quantities(tokens) if token.start not in replaced}
    for noun, value, token in _quantities(tokens):
        spans.append((token.start, token.end, "", "znum"))
        if noun in new and token.start in replaced:
            continue
        at = tokens.index(token)
        more |= {noun for one in tokens[max(at - 1, 0) : at + 3] if one.word in _MORE}
        counts[noun] = (*counts.get(noun, ()), value)
    spans += list(_ranks(tokens, {start for start, *_ in spans}))
    spans += [(token.start, token.end, "now", token.word) for token in tokens if token.word in _NOW]
    words = [token.word for token in tokens]
    chosen = [token.word for token in tokens if token.start not in replaced]
    hardware, spans_of_hardware = machines(text)
    operations = tuple(token.text for token in tokens if re.fullmatch(r"[a-z][\w-]*\.\d+", token.word))
    named = _words_of_settings().search(text)
    spans += [(*named.span(), "", "zsetting")] if named else []
    spans += [(*one.span(), "", "zaxis") for one in _AXIS.finditer(text) if _apart(one, spans)]
    spans += spans_of_hardware + [(token.start, token.end, "", "zop") for token in tokens if token.text in operations]
    spans.sort()
    return Slots(
        plans=tuple(dict.fromkeys(plan for _, _, plan, _ in spans if plan)),
        counts=counts,
        factors=dict(_factors(words)),
        more=frozenset(more),
        nouns=tuple(dict.fromkeys(NOUNS[word] for word in words if word in NOUNS)),
        hardware=hardware,
        network=next((f"{''.join(a[1].split())}{a[2] or 'b'}/{(a[3] or 'node').lower()}" for a in rates[::-1]), None),
        precision=next((_PRECISIONS[word] for word in reversed(chosen) if word in _PRECISIONS), None),
        optimizer=next((word for word in reversed(chosen) if word in _OPTIMIZERS), None),
        remat=_policy(chosen),
        switched=tuple(dict.fromkeys(_switched(words))),
        supposed=tuple(dict.fromkeys(_switched(words, named=True))),
        setting=_SETTINGS[re.sub(r"[\W_]+", "", named.group().lower())] if named else None,
        axis=WORDS[(axis[1] or axis[2]).lower()] if (axis := _AXIS.search(text)) else None,
        operations=operations,
        masked=_masked(text, spans),
    )


def _apart(found: re.Match[str], spans: list[Span]) -> bool:
    return not any(start < found.end() and found.start() < end for start, end, _, _ in spans)


def _quantities(tokens: list[_Token]) -> Iterator[tuple[Noun, float, _Token]]:
    """Numbers, each with the noun behind it, or else before it."""
    for at, token in enumerate(tokens):
        value = token.value if token.value is not None else COUNTS.get(token.word)
        if value is None:
            continue
        if at and tokens[at - 1].text == "$":
            yield "price", value, token
            continue
        ahead = next(
            (one for one in tokens[at + 1 : at + 1 + _AHEAD] if one.word in _ENDS or one.value is not None), None
        )
        noun: Noun | None = NOUNS.get(ahead.word) if ahead is not None else None
        behind = pairwise(tokens[at + 1 : at + 1 + _BACK])
        each = any(one.word in _EACH and NOUNS.get(other.word) == "chips" for one, other in behind)
        noun = None if each and noun == "chips" else noun
        if noun is None and token.word not in COUNTS:
            before = tokens[max(at - _BACK, 0) : at]
            if any(one.value is not None for one in before):
                before = tokens[max(at - _LIST, 0) : at]
            noun = next((NOUNS[one.word] for one in reversed(before) if one.word in NOUNS), None)
            noun = None if at and tokens[at - 1].word in _RANKED else noun or _of_list(tokens[at + 1 : at + _LIST])
        if noun == "global_batch" and value >= _LONG and ahead is not None and ahead.word == "sequences":
            noun = "sequence_length"
        if noun == "global_batch" and (
            each or any(NOUNS.get(one.word) == "micro_batch" for one in tokens[max(at - _BACK, 0) : at])
        ):
            noun = "micro_batch"
        noun = None if noun == "sequence_length" and value < _SHORTEST else noun  # a degree of context parallelism
        noun = None if noun == "global_batch" and value > _LARGEST else noun  # samples of all steps
        if noun == "%" and value <= 1 and not (ahead and ahead.word in ("%", "percent")):
            value *= 100  # an MFU as a fraction
        if noun is not None and noun != "remat":
            yield noun, value, token


def _of_list(behind: list[_Token]) -> Noun | None:
    """The noun behind a list of numbers: ``64, 128 and 256 chips``."""
    last = next((one for one in behind if one.value is None and one.word not in {"and", "or"}), None)
    return NOUNS.get(last.word) if last and last is not behind[0] else None


def _ranks(tokens: list[_Token], taken: set[int]) -> Iterator[Span]:
    """Places of ranks, with the nouns beside them."""
    found: set[int] = set()
    for at, token in enumerate(tokens):
        if token.start in taken:
            continue
        before = tokens[at - 1] if at else None
        behind = tokens[at + 1] if at + 1 < len(tokens) else None
        named = before is not None and before.word in _RANKED
        start = before.start if before is not None and named else token.start
        if token.word in _ORDINALS:
            ends = behind is not None and behind.word in {*_RANKED, "one"}
            led = before is not None and before.word in {"the", "and", "or", "vs", "than", "my", "your"}
            if ends or (led and (behind is None or behind.word not in {*NOUNS, "thing", "step"})):
                yield (
                    start,
                    behind.end if behind is not None and ends else token.end,
                    str(_ORDINALS[token.word]),
                    "zrank",
                )
        elif token.word in COUNTS and named:
            yield start, token.end, str(COUNTS[token.word]), "zrank"
        elif token.text.isdigit() and (named or _may_be_rank(tokens, at, found)):
            found.add(at)
            yield start, token.end, token.text, "zrank"


def _may_be_rank(tokens: list[_Token], at: int, ranks: set[int]) -> bool:
    """Whether a digit stands where ranks do; behind another word it is of a name: ``flash attention 2 or 3``."""
    if tokens[at].text not in _DIGITS or any(
        one.word in ("x", "times") or (one.word in _RANKED and one.word[-1] == "s") for one in tokens[at + 1 : at + 2]
    ):
        return False
    near = next((one for one in (at - 1, at - 2) if one >= 0 and tokens[one].text in _DIGITS), None)
    return near in ranks if near is not None else not at or not _leads().isdisjoint(stems(tokens[at - 1].word))


@cache
def _leads() -> frozenset[str]:
    """Words before a rank in the examples of the classifier."""
    return frozenset(
        stems(" ".join(word for _, text in examples() for word in re.findall(r"([\w'/-]+),? zrank", text)))
    )


def _factors(words: list[str]) -> Iterator[tuple[Noun, float]]:
    """Multiples of what is counted, and of the time: ``half the time``, ``twice as fast``, ``3x the batch``."""
    for at, word in enumerate(words):
        factor = next((times for start, times in _FACTORS.items() if word.startswith(start)), None)
        factor = number(word) if words[at + 1 : at + 2] in (["x"], ["times"]) else factor
        if factor is None:
            continue
        ahead = {*words[at + 1 : at + 4]}
        if ahead & (_TIMES | _SPEEDS):
            yield "time", factor if ahead & _TIMES else 1 / factor
        else:
            near = [*words[at + 1 : at + 6], *reversed(words[max(at - _BACK, 0) : at])]
            noun = next((NOUNS[one] for one in near if one in NOUNS), None)
            if noun in ("global_batch", "sequence_length", "chips", "nodes", "slices", "microbatches"):
                yield noun, factor


def _policy(words: list[str]) -> str | None:
    places = [n for n, one in enumerate(words) if NOUNS.get(one) == "remat" or "remat=full" in _SWITCHES.get(one, ())]
    return next((word for at in places for word in words[max(at - 2, 0) : at + 4] if word in _POLICIES), None)


def _switched(words: list[str], named: bool = False) -> Iterator[str]:
    for at, word in enumerate(words):
        near = {*stems(" ".join(words[max(at - _BACK, 0) : at + _BACK])), *words[max(at - _BACK, 0) : at + _BACK]}
        off, on = (
            bool(near & verbs or (near & _SWITCH and way in near)) for verbs, way in ((_OFF, "off"), (_ON, "on"))
        )
        off |= "off" in words[at + 1 : at + _BACK]
        parallel = word != "sequence" or any(one.startswith("parallel") for one in words[at + 1 : at + 2])
        if word in _SWITCHES and parallel and (off != on or (named and not off)):
            setting, one = _SWITCHES[word][not off], "optimizer" in words and "parameters" not in words
            yield setting.partition("+")[0] if one else setting


@cache
def _words_of_settings() -> re.Pattern[str]:
    words = "|".join("[ ._-]?".join(each) for each in sorted(_SETTINGS, key=len, reverse=True))
    return re.compile(rf"(?<![\w=])(?:{words})(?![\w=])", re.I)


def _masked(text: str, spans: list[Span]) -> str:
    for start, end, _, mask in sorted(spans, reverse=True):
        text = f"{text[:start]} {mask} {text[end:]}"
    return text
