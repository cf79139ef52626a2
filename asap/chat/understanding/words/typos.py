"""A figure of the record that is said to be wrong, with the right one: "2048 is a typo, its 1024"."""

import re

from asap.study.study import Study

_WRONG = (
    r"(?:(?:is|was|'s|are|=)\s+)?(?:just\s+)?(?:a\s+|an\s+|my\s+)?"
    r"(?:typo|mistake|wrong|not right|incorrect|stale|outdated|off by \w+|error)"
)
_RIGHT = r"(?:(?:it|that|we|our|the|real|right|one|is|are|'s|its|should|be|make|use|run|at|actually|really|to)\s*)*"
_VALUE = r"(?P<right>\d[\d,]*\s?k?)(?![\w.%])"
_THING = r"(?P<name>(?:global )?batch(?: size)?|gbs|seq\w*(?: len\w*)?|context(?: length)?)"
_OLD = r"(?P<old>\d[\d,]*\s?k?)(?![\w.%])"
_LEAD = r"^\W*(?:(?:sorry|oops|no|ah|oh|wait|btw|fyi|and|but|the|that|your|our|my)\W+)*"
_MENDED = re.compile(
    rf"{_LEAD}(?:{_THING}(?:\s+(?:of\s+)?\d[\d,]*k?)?|{_OLD})\s+{_WRONG}\W+{_RIGHT}{_VALUE}"
    rf"|{_LEAD}{_RIGHT}(?P<new>\d[\d,]*\s?k?)\s*,?\s+(?:and )?not (?P<denied>\d[\d,]*\s?k?)(?![\w.%])",
    re.I,
)


def with_figure_put_right(text: str, study: Study) -> str:
    """The text with the batch or the sequence stated, where a line says that the figure on record is wrong."""
    found = _MENDED.match(text)
    if found is None:
        return text
    name = found["name"] or _named(_count(found["old"] or found["denied"]), study)
    if name is None:
        return text
    thing = "global batch" if re.search(r"batch|gbs", name, re.I) else "sequence length"
    return f"our {thing} is {_count(found['right'] or found['new'])}{text[found.end() :]}"


def _named(value: int, study: Study) -> str | None:
    """The one thing of the run that has the value."""
    workload = study.experiment.workload
    known = {"batch": workload.global_batch, "sequence": workload.sequence_length}
    having = [name for name, count in known.items() if count == value]
    return having[0] if len(having) == 1 else None


def _count(text: str) -> int:
    digits = int(re.sub(r"\D", "", text))
    return digits * 1024 if text.strip().lower().endswith("k") else digits
