"""Plans that a text writes out among other words: ``tp=8, dp=4``, ``tp8 pp4``, ``tp 8``, ``remat_policy=full``."""

import re

from asap.plans.axes import KEYS, WORDS
from asap.plans.plan import Plan
from asap.plans.text import SETTINGS

_KEY = "|".join(sorted((*WORDS, *KEYS), key=len, reverse=True))
_COUNTS = ("microbatches", "pipeline_repeats", "loss_chunks")
_COUNTED = "|".join(word for word, setting in SETTINGS.items() if setting in _COUNTS)
_DEGREE = rf"(?:(?:dcn\.|ici\.)?(?:{_KEY})|(?:ici|dcn)_[a-z_]++(?<=_parallelism)|{_COUNTED})"
_POLICY = r"remat(?:_policy)?['\"]?\s*[=:]\s*\w+(?:[.+]\w+)*"
_TERM = (
    rf"['\"]?\b{_DEGREE}\b['\"]?\s*[=:]\s*-?\d+|\b{_POLICY}|\boffload['\"]?\s*[=:]\s*[\w+]+"
    r"|\b(?:(?:first|second)_moment|weight_precision|optimizer|global_batch)\s*[=:]\s*\w+"
    r"|\b(?:[tdcpe]p\d{1,9})+\b|\b(?:[tdcpe]p|fsdp) \d{1,9}\b"
)
_PLAN = re.compile(rf"(?:{_TERM})(?:[\s,{{}}]+(?:(?:and|with)\s+)?(?:{_TERM}))*", re.IGNORECASE)
_ONE_TERM = re.compile(_TERM, re.IGNORECASE)
_SPACED = re.compile(r"(?<=^[tdcpe]p) |(?<=^fsdp) ")


def plan_spans(text: str) -> list[tuple[int, int, Plan]]:
    """Plans that are written out, with the place of each.

    Raises:
        PlanError: one is malformed.
    """
    return [(match.start(), match.end(), _listed(match.group())) for match in _PLAN.finditer(text)]


def plans_written(text: str) -> list[Plan]:
    """Plans that are written out, in their order; raises like :func:`plan_spans`."""
    return list(dict.fromkeys(plan for _, _, plan in plan_spans(text)))


def _listed(text: str) -> Plan:
    terms = (match.group().lower() for match in _ONE_TERM.finditer(text))
    return Plan.parse(" ".join(_SPACED.sub("=", term) for term in terms))
