"""Plans in prose: ``tp=8, dp=4``, ``8-way tensor parallelism``, ``pipeline degree of 4``, ``tp8``."""

import re

from asap.plans.axes import KEYS, WORDS
from asap.plans.plan import Plan
from asap.plans.text import SETTINGS, data_note

_KEY = "|".join(sorted((*WORDS, *KEYS), key=len, reverse=True))
_COUNTS = ("microbatches", "pipeline_repeats", "loss_chunks")
_COUNTED = "|".join(word for word, setting in SETTINGS.items() if setting in _COUNTS)
_DEGREE = rf"(?:(?:dcn\.|ici\.)?(?:{_KEY})|(?:ici|dcn)_[a-z_]+_parallelism|{_COUNTED})"
_POLICY = r"remat(?:_policy)?['\"]?\s*[=:]\s*\w+(?:[.+]\w+)*"
_TERM = (
    rf"['\"]?\b{_DEGREE}\b['\"]?\s*[=:]\s*-?\d+|\b{_POLICY}|\boffload['\"]?\s*[=:]\s*[\w+]+"
    r"|\bfirst_moment\s*[=:]\s*\w+"
)
_PLAN = re.compile(rf"(?:{_TERM})(?:[\s,{{}}]*(?:and\s+)?(?:{_TERM}))*", re.IGNORECASE)
_ONE_TERM = re.compile(_TERM, re.IGNORECASE)
_AXIS = r"(tensor|model|data|sequence|context|expert|pipeline|fsdp|tp|dp|cp|sp|pp|ep)"
_PARALLEL = r"(?:[- ]?parallel\w*|[- ]axis|[- ]degree)"
_WAY = re.compile(rf"\b(\d+)[- ]?(?:way|x)[- ]{_AXIS}{_PARALLEL}?\b", re.IGNORECASE)
_OF = re.compile(rf"\b{_AXIS}{_PARALLEL}\s+(?:degree\s+)?(?:(?:of|at|to|is|=|by)\s+)?(\d+)\b", re.IGNORECASE)
_COMPACT = re.compile(r"\b(tp|dp|cp|sp|pp|ep|fsdp)[- ]?(?:of |size )?(\d+)\b", re.IGNORECASE)


def plans_written(text: str) -> list[Plan]:
    """Plans that are written out, in their order.

    Raises:
        PlanError: one is malformed.
    """
    found = [(match.start(), _listed(match.group())) for match in _PLAN.finditer(text)]
    rest = _PLAN.sub(lambda match: " " * len(match.group()), text)
    for match in _WAY.finditer(rest):
        found.append((match.start(), Plan.parse(f"{match[2]}={match[1]}")))
    rest = _WAY.sub(lambda match: " " * len(match.group()), rest)
    for match in [*_OF.finditer(rest), *_COMPACT.finditer(rest)]:
        found.append((match.start(), Plan.parse(f"{match[1]}={match[2]}")))
    return list(dict.fromkeys(plan for _, plan in sorted(found, key=lambda pair: pair[0])))


def data_notes(text: str, incumbent_replicas: int = 1) -> tuple[str, ...]:
    """What ``data`` was taken for in written plans, where their writer may have meant MaxText's."""
    notes = (data_note(_terms(match.group()), incumbent_replicas) for match in _PLAN.finditer(text))
    return tuple(dict.fromkeys(note for note in notes if note))


def without_plans(text: str) -> str:
    """The text with written plans taken out, so that their degrees are not read as anything else."""
    for pattern in (_PLAN, _WAY, _OF, _COMPACT):
        text = pattern.sub(" ", text)
    return text


def _listed(text: str) -> Plan:
    return Plan.parse(_terms(text))


def _terms(text: str) -> str:
    return " ".join(match.group().lower() for match in _ONE_TERM.finditer(text))
