"""Whose report it is by its words: a digit that is a proposal, what runs here, a digit that may be either."""

import re

from asap.chat.understanding.references.references import References

_TRIED = re.compile(
    r"\b(?:tried|tested|ran|run|benchmarked|timed|launched|started|deployed|used|switched to|went with|applied)\s+"
    r"(?:out\s+)?[1-9]\b(?!\s+(?:chips?|[gt]pus?|nodes?|hosts?|devices?|slices?|pods?|steps?|jobs?|times?))"
    r"|\b(?:with|on|for|under)\s+#?[1-3](?=\W*(?:$|[,;!]|\.(?!\d)))"
    r"|^\W*(?:(?:ok(?:ay)?|and|so|but|then|btw|well|also|what|if|when|suppose|assuming|say)\W+)*[1-9]\s+(?:oom\w*|crash\w*|fail\w*|ran|took|measured|was"
    r"|died|hung|gave|got|did|fits?|doesn't|didn't|does not|did not|won't"
    r"|went|came|comes|runs|clock\w*|land\w*|hits?|hit"
    r"|reach\w*|finish\w*|averag\w*|needed|returned|ended|peak\w*|is at|sits at|at"
    r"|nan\w*|diverged|blew|segfault\w*|deadlock\w*|stall\w*"
    r"|(?:uses?|takes|needs)(?=[^?]*\b(?:in reality|really|measured)\b)"
    r"|(?:actually|really) (?:uses?|takes|needs))(?!\w)",
    re.I,
)
"""Words beside which a lone digit is a rank: "I tried 2", "2 crashed", "12 % faster with 1"."""

_FITS = re.compile(r"\b(?:fits?|oom\w*|out of memory)\b", re.I)
_OF_US = re.compile(r"\b(?:for (?:us|me)|on our (?:side|end|cluster|nodes|gpus|tpus)|in (?:practice|prod\w*))\b", re.I)
"""Says that it is of the run as it is."""
_LONE_SUBJECT = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|and|so|but|then|btw|well|also|now)\W+)*([1-3])\s+"
    r"(?!(?:[a-z-]*\s+)?(?:nodes?|hosts?|[gt]pus?|chips?|devices?|steps?|runs?|jobs?|iter\w*|times?|slices?|pods?|s|ms|secs?"
    r"|seconds?|min\w*|[gmt]i?b|g|x|k|m|of|micro\w*|stages?|layers?|sequences?|tokens?)\b)[a-z]",
    re.I,
)
"""A digit that may be a proposal where the subject stands."""


def names_by_digit(text: str) -> bool:
    """Whether lone digits of a report are proposals: "I tried 2", "2 crashed"."""
    return _TRIED.search(text) is not None


def lone_subject(text: str) -> str | None:
    """The digit where the subject stands, which may be a proposal or the start of something else."""
    found = _LONE_SUBJECT.match(text)
    return found[1] if found else None


def is_of_what_runs(text: str, refs: References) -> bool:
    """Whether it says of no plan but what runs here if it fits: "it does not oom for us, peak is 71 GB"."""
    pointed = all(mention.way == "pointing" for mention in refs.mentions)
    return pointed and _FITS.search(text) is not None and _OF_US.search(text) is not None
