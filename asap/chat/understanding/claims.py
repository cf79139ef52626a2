"""What a sentence claims of a plan that was run: out of memory, fits, step time. Plans are removed from it first."""

import re

from asap.chat.evidence import Claim

_NEGATED = re.compile(r"\b(?:not|never|hardly|without|no longer|no (?=oom|out))\b|n't\b|\bdidnt\b", re.I)
_DIED = re.compile(
    r"\b(?:ran|runs|running|went|goes|gone) (?:\w+ )?(?:out[- ]of|over)[- ](?:the )?(?:hbm|device|gpu)?[- ]?"
    r"(?:memory|hbm)\b"
    r"|\boom(?:ed|s|'d|'ed|-ed)\b|\b(?:exceed(?:ed|s)|blew)\s+(?:\w+\s+)?(?:the\s+)?(?:hbm|memory)\b"
    r"|\b(?:did|does)\s*n[o']t fit\b|\b(?:did|does) not fit\b|\b(?:didn't|doesn't) fit\b",
    re.I,
)
_MEMORY = re.compile(
    r"\bout[- ]of[- ](?:hbm[- ]|device[- ]|gpu[- ])?memory\b|\boom\w*\b|\bresource[_ ]?exhausted\b", re.I
)
_FITTED = re.compile(r"\b(?:fits|fitted|did fit|does fit|fit fine|fit into (?:hbm|memory))\b", re.I)
_FAILED = re.compile(
    r"\b(?:crashe[sd]|failed|hung|hangs|went nan|nan(?:s|ed|'d)|segfault\w*|deadlock\w*|diverged|died|"
    r"(?:did\s*n[o']t|did not|didn't|does not|doesn't|won't) (?:compile|start|finish|work|run|converge))\b",
    re.I,
)
_SECONDS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?)(?![\w])", re.I)
_NOT_A_STEP = re.compile(
    r"\b(?:compil\w+|start\w*|load\w*|checkpoint\w*|init\w*|warm\w*|restor\w*|eval\w*|total)\b", re.I
)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*(?:%|percent)\s*(faster|quicker|slower|shorter|longer)", re.I)
_TIMES = re.compile(r"(\d+(?:\.\d+)?)\s*(?:x|×|times)\s*(?:as\s+)?(faster|fast|slower|slow|speed-?up)", re.I)
_HAPPENED = re.compile(
    r"\b(?:measured|measures|measurement|took|takes|ran|run|tested|tried|benchmarked|timed|clocked|was|were|got|gets|gave"
    r"|came (?:out|in)|turned out|reached|achieved"
    r"|needs|needed|hit|hits|died|threw|ended|had|saw|finished|step time|(?:per|a|each) step"
    r"|fails|crashes|dies|dead|step \d+|yesterday|today|tonight|this morning|ago|last (?:week|night|month))\b",
    re.I,
)
_TERSE_WORDS = 3
"""A figure or a failure with so few words beside its plan is a report: "proposal 2: 2.1 s"."""
_THAN_ANOTHER = re.compile(
    r"\bthan "
    r"(?!(?:the |our )?(?:baseline|current|incumbent|present|running|existing|what|now|before|today|ours|usual))",
    re.I,
)
_FASTER = re.compile(r"\b(?:faster|quicker|sped up|improved)\b", re.I)
_SLOWER = re.compile(r"\b(?:slower|regressed|slowed)\b", re.I)


def claim_in(clause: str, happened: bool = False) -> tuple[Claim | None, float | None]:
    """What a clause claims, with its figure in seconds or over the step that runs now.

    Args:
        clause: words without plans.
        happened: it is known already that it is about something that happened.
    """
    negated = _NEGATED.search(clause) is not None
    reported = happened or _HAPPENED.search(clause) is not None or _is_terse(clause)
    if _FITTED.search(clause) and not negated:
        return Claim.FITS, None
    if died := _DIED.search(clause):
        unfit = "fit" in died.group().lower()
        return (Claim.OUT_OF_MEMORY if unfit or not negated else Claim.FITS), None
    if _MEMORY.search(clause) and reported:
        return (Claim.FITS if negated else Claim.OUT_OF_MEMORY), None
    if failed := _FAILED.search(clause):
        denied = _NEGATED.search(clause.replace(failed.group(), ""))
        return (None if denied else Claim.FAILED), None
    return (None, None) if negated or not reported else _performance(clause)


def against_another(clause: str) -> bool:
    """Whether a run is compared with something else than what runs now."""
    return _THAN_ANOTHER.search(clause) is not None


def _performance(clause: str) -> tuple[Claim | None, float | None]:
    if match := _PERCENT.search(clause) or _TIMES.search(clause):
        return Claim.RELATIVE, _relative(float(match[1]), match[2].lower(), "%" in match[0] or "percent" in match[0])
    if (match := _SECONDS.search(clause)) and not _NOT_A_STEP.search(clause):
        return Claim.STEP_TIME, float(match[1]) * (1e-3 if match[2].lower().startswith("m") else 1.0)
    if _SLOWER.search(clause):
        return Claim.SLOWER, None
    return (Claim.FASTER, None) if _FASTER.search(clause) else (None, None)


def _is_terse(clause: str) -> bool:
    words = re.findall(r"[a-z]{2,}", clause.lower())
    return len(words) <= _TERSE_WORDS and not {"is", "are"} & set(words)


def _relative(amount: float, direction: str, percent: bool) -> float | None:
    """Step time over that of what runs now: ``20 % faster`` is 1.2 times the speed, ``20 % shorter`` 0.8 the time."""
    if not percent:
        return amount if direction.startswith("slow") else 1 / amount if amount else None
    share = amount / 100
    return {"slower": 1 + share, "longer": 1 + share, "shorter": max(1 - share, 1e-3)}.get(direction, 1 / (1 + share))
