"""A value that is judged and replaced: "batch 8 is too small, make it 64" is "what if batch 64"."""

import re

_SIZE = r"(?:small|low|little|few|large|big|high|much|many|long|short)"
_JUDGED = re.compile(
    r"^(?P<before>[^?]*?)\b(?P<thing>[a-z]+(?:[ _-][a-z]+){0,2}?)\s*(?:size|length)?"
    r"\s*(?:(?:of|is|at|=|:)\s*)?"
    r"(?P<old>\d+(?:\.\d+)?k?)\b[^?;.]*?\b"
    rf"(?:(?:(?:way |far |a bit |much |kinda |really )*too|seems?|looks?|feels?) {_SIZE}"
    r"|not enough|overkill|ridiculous|silly|tiny|huge)\b"
    r"[^?\d]*?\b(?:(?:make|set|bump|change|raise|lower|cut|drop|push|try|put|take|use)"
    r"\s+(?:it|that|this)|try|use|go (?:with|to))"
    r"\s+(?:(?:up|down|back)\s+)?(?:(?:to|at|=)\s*)?(?P<new>\d+(?:\.\d+)?k?)\b(?P<after>.*)$",
    re.I,
)


def with_value_wanted(text: str) -> str:
    """The text as a question on the value that is wanted, of the thing whose value is found wrong."""
    found = _JUDGED.match(text)
    return text if found is None else f"what if {found['thing']} {found['new']}{found['after']}"
