"""Plans in prose: ``tp=8, dp=4``, ``8-way tensor parallelism``, ``pipeline degree of 4``, ``tp8``, ``two stages``."""

import re

from asap.plans.axes import KEYS, WORDS
from asap.plans.plan import SETTINGS as FIELDS
from asap.plans.plan import Mesh, Plan
from asap.plans.text import SETTINGS

_KEY = "|".join(sorted((*WORDS, *KEYS), key=len, reverse=True))
_COUNTS = ("microbatches", "pipeline_repeats", "loss_chunks")
_COUNTED = "|".join(word for word, setting in SETTINGS.items() if setting in _COUNTS)
_DEGREE = rf"(?:(?:dcn\.|ici\.)?(?:{_KEY})|(?:ici|dcn)_[a-z_]++(?<=_parallelism)|{_COUNTED})"
_POLICY = r"remat(?:_policy)?['\"]?\s*[=:]\s*\w+(?:[.+]\w+)*"
_TERM = (
    rf"['\"]?\b{_DEGREE}\b['\"]?\s*[=:]\s*-?\d+|\b{_POLICY}|\boffload['\"]?\s*[=:]\s*[\w+]+"
    r"|\b(?:(?:first|second)_moment|weight_precision|optimizer|global_batch)\s*[=:]\s*\w+"
)
_PLAN = re.compile(rf"(?:{_TERM})(?:[\s,{{}}]+(?:and\s+)?(?:{_TERM}))*", re.IGNORECASE)
_ONE_TERM = re.compile(_TERM, re.IGNORECASE)
_NUMBERS = {"two": 2, "three": 3, "four": 4, "eight": 8, "sixteen": 16}
_COUNT = rf"\d+|{'|'.join(_NUMBERS)}"
_AXIS = r"(tensor|model|data|sequence|context|expert|pipeline|fsdp|tp|dp|cp|sp|pp|ep)"
_PARALLEL = r"(?:[- ]?parallel\w*|[- ]axis|[- ]degree|[- ]shard\w*)"
_WAY = re.compile(rf"\b({_COUNT})[- ]?(?:way|x)[- ]{_AXIS}{_PARALLEL}?\b", re.IGNORECASE)
_STAGES = re.compile(rf"\b({_COUNT})[- ](?:pipeline[- ])?(stages?)\b", re.IGNORECASE)
_OF = re.compile(
    rf"\b{_AXIS}{_PARALLEL}\s+(?:degree\s+|size\s+)?(?:(?:drops?|goes|falls?|reduced|down|up|raised)\s+)*(?:(?:of|at|to|is|=|by)\s+)?(?:size\s+)?({_COUNT})\b(?![.,]?\d|\s*(?:%|x\b|times))",
    re.IGNORECASE,
)
_FROM = re.compile(rf"\b{_AXIS}{_PARALLEL}?\s+(?:\w+\s+)?from\s+\d+\s+to\s+({_COUNT})\b", re.IGNORECASE)
_PYTORCHS = r"(?<!p\d[ ,+x-])fsdp[12]\b(?!\W{1,3}(?:tp|dp|cp|sp|pp|ep)\d)"
"""Versions of PyTorch's FSDP, unless they stand among degrees: ``tp4 fsdp2``."""
_COMPACT = re.compile(
    rf"\b(?!{_PYTORCHS})(tp|dp|cp|sp|pp|ep|fsdp|tensor|expert|pipeline)[- ]?"
    r"(?:(?:of|at|size|to|is|only|just|down|up) ){0,3}(\d+)\b"
    r"(?![.,]\d|\s*(?:%|x\b|s\b|ms\b|times))",
    re.IGNORECASE,
)
_VERB = r"(?:keep|drop|add|set|raise|lower|cut|bump)(?:ing|p?ping|ting)?"
_JOINED = re.compile(
    rf"[\s,+×x*]*(?:and|with|plus|by|(?:(?:and|while|then|also) )?{_VERB}|combined with|together with)?[\s,]*", re.I
)


def plan_spans(text: str) -> list[tuple[int, int, Plan]]:
    """Plans that are written out, with the place of each; neighbours that complete each other are one plan.

    Raises:
        PlanError: one is malformed.
    """
    found = [(match.start(), match.end(), _listed(match.group())) for match in _PLAN.finditer(text)]
    rest = _PLAN.sub(_blank, text)
    for pattern, axis, degree in ((_WAY, 2, 1), (_STAGES, 2, 1), (_FROM, 1, 2), (_OF, 1, 2), (_COMPACT, 1, 2)):
        for match in pattern.finditer(rest):
            count = _NUMBERS.get(match[degree].lower(), match[degree])
            found.append((match.start(), match.end(), Plan.parse(f"{match[axis].lower()}={count}")))
        rest = pattern.sub(_blank, rest)
    return _merged(text, sorted(found, key=lambda span: span[0]))


def plans_written(text: str) -> list[Plan]:
    """Plans that are written out, in their order; raises like :func:`plan_spans`."""
    return list(dict.fromkeys(plan for _, _, plan in plan_spans(text)))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _listed(text: str) -> Plan:
    return Plan.parse(_terms(text))


def _terms(text: str) -> str:
    return " ".join(match.group().lower() for match in _ONE_TERM.finditer(text))


def _merged(text: str, spans: list[tuple[int, int, Plan]]) -> list[tuple[int, int, Plan]]:
    """``8-way fsdp with tp 2`` as one plan: neighbours on different axes with no more than "and" between them."""
    merged: list[tuple[int, int, Plan]] = []
    for start, end, plan in spans:
        if merged and _JOINED.fullmatch(text[merged[-1][1] : start]) and (both := _both(merged[-1][2], plan)):
            merged[-1] = (merged[-1][0], end, both)
        else:
            merged.append((start, end, plan))
    return merged


def _both(first: Plan, second: Plan) -> Plan | None:
    """Two plans on different axes and with different settings as one."""
    terms = [f"{first} {second}".split(), [str(first.ici), str(second.ici)]]
    names = [term.partition("=")[0] for term in terms[0]]
    if len(names) != len(set(names)) or first == second:
        return None
    if set(FIELDS) & first.model_fields_set & second.model_fields_set:
        return None
    both = Plan.parse(" ".join(terms[0]))
    said = first.ici.model_fields_set | second.ici.model_fields_set
    return both.model_copy(update={"ici": Mesh(**{axis: getattr(both.ici, axis) for axis in said})})
