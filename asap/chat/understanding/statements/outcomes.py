"""What became of a plan that was run, by the words of a clause. Plans are removed from it first."""

import re

from asap.evidence.claims import Claim

_NEGATED = re.compile(r"\b(?:not|never|hardly|without|no longer|no (?=oom|out))\b|n't\b|\bdidnt\b", re.I)
_DIED = re.compile(
    r"\b(?:ran|runs|running|went|goes|gone) (?:\w+ )?(?:out[- ]of|over)[- ](?:the )?(?:hbm|device|gpu)?[- ]?"
    r"(?:memory|hbm)\b"
    r"|\b(?:went|goes|gone|hits?|got|gets?|gave|gives|threw|throws|ended (?:in|with)|died (?:of|with|from))"
    r" (?:an? |with )?(?:cuda )?oom\b|\boom(?:ed|s|'d|'ed|-ed)\b"
    r"|\b(?:exceed(?:ed|s)|blew)\s+(?:\w+\s+)?(?:the\s+)?(?:hbm|memory)\b"
    r"|\b(?:did|does)\s*n[o']t fit\b|\b(?:did|does) not fit\b|\b(?:didn't|doesn't) fit\b",
    re.I,
)
_MEMORY = re.compile(
    r"\bout[- ]of[- ](?:hbm[- ]|device[- ]|gpu[- ])?memory\b|\boom\w*\b|\bresource[_ ]?exhausted\b"
    r"|\b(?:hbm|memory) (?:is |was |got )?exhausted\b|\bexhaust(?:ed|s) (?:the |all )?(?:hbm|memory)\b",
    re.I,
)
_FITTED = re.compile(r"\b(?:fits|fitted|did fit|does fit|fit fine|fit into (?:hbm|memory))\b", re.I)
_FAILED = re.compile(
    r"\b(?:crashe[sd]|failed|fell over|blew up|hung|hangs|went nan|nan(?:s|ed|'d)|segfault\w*"
    r"|deadlock\w*|diverged|died|"
    r"(?:did\s*n[o']t|did not|didn't|does not|doesn't|won't) (?:compile|start|finish|work|run|converge))\b",
    re.I,
)
_HAPPENED = re.compile(
    r"\b(?:measured?|measures|measurement|took|takes|ran|run|tested|tried|benchmarked|timed|clocked|was|were|got|gets|gave"
    r"|gives|yields|shows|(?:i|we) (?:get|see|have|measure)"
    r"|came (?:out|in)|turned out|reached|achieved"
    r"|needs|needed|hit|hits|fell over|clock\w*|reads?|reports?|average[sd]?|now at|behaved"
    r"|did (?:that|this|it)|peaked|died|threw|ended|had|saw|finished|step time|(?:per|a|each) step"
    r"|fails|crashes|dies|dead|reserved|allocated"
    r"|step \d+|yesterday|today|tonight|this morning|ago|last (?:week|night|month))\b",
    re.I,
)
_LABELLED = re.compile(r"^[^:?]{0,40}:\s*\d")
"""The form of a report: "candidate 1: 15 % quicker"."""
_TERSE_WORDS = 3
"""A figure or a failure with so few words beside its plan is a report: "proposal 2: 2.1 s"."""
_THAN_ANOTHER = re.compile(
    r"\bthan "
    r"(?!(?:the |our )?(?:baseline|current|incumbent|present|running|existing|what|now|before|today|ours|usual))",
    re.I,
)
_THAT = re.compile(r"(?:that|it)\b", re.I)
_FASTER = re.compile(r"\b(?:faster|quicker|sped up|improved)\b", re.I)
_SLOWER = re.compile(r"\b(?:slower|regressed|slowed)\b", re.I)


def outcome_in(clause: str) -> Claim | None:
    """What became of a run by the words of a clause: out of memory, fits, failed, slower, faster."""
    negated = _NEGATED.search(clause) is not None
    if _FITTED.search(clause) and not negated:
        return Claim.FITS
    if died := _DIED.search(clause):
        unfit = "fit" in died.group().lower()
        return Claim.OUT_OF_MEMORY if unfit or not negated else Claim.FITS
    if _MEMORY.search(clause) and (happened(clause) or _FAILED.search(clause)):
        return Claim.FITS if negated else Claim.OUT_OF_MEMORY
    if failed := _FAILED.search(clause):
        return None if _NEGATED.search(clause.replace(failed.group(), "")) else Claim.FAILED
    if negated or not happened(clause):
        return None
    return Claim.SLOWER if _SLOWER.search(clause) else Claim.FASTER if _FASTER.search(clause) else None


def happened(clause: str) -> bool:
    """Whether a clause reports, or is as terse as a report: "proposal 2: 2.1 s"."""
    words = re.findall(r"[a-z]{2,}", clause.lower())
    terse = len(words) <= _TERSE_WORDS and not {"is", "are"} & set(words)
    return terse or reports(clause)


def reports(clause: str) -> bool:
    """Whether a clause has the words or the form of a report."""
    return any(pattern.search(clause) for pattern in (_HAPPENED, _LABELLED))


def against_another(clause: str, *, that_runs_now: bool) -> bool:
    """Whether a run is compared with something else than what runs now.

    Args:
        clause: a report.
        that_runs_now: "that" stands for what runs now.
    """
    than = _THAN_ANOTHER.search(clause)
    return than is not None and not (that_runs_now and _THAT.match(clause, than.end()))
