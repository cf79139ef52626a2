"""Several measured steps in a row, "step 10.1, 9.9, 10.0": one step, their median."""

import re
from statistics import median

from asap.core.units import significant

_UNIT = r"(?:ms|msec|milliseconds?|s|secs?|seconds?)"
_FIGURE = r"\d+(?:\.\d+)?"
_BETWEEN = (
    r"(?:(?:\s*[;/|]\s*|\s*,\s+|(?<=\.\d),(?=\d+\.)|(?<=\.\d\d),(?=\d+\.))(?:and\s+|then\s+)?|\s+(?:and|then)\s+|\s+)"
)
_LIST = rf"(?<!\d)(?P<figures>{_FIGURE}(?:\s?{_UNIT}\b)?(?:{_BETWEEN}{_FIGURE}(?:\s?{_UNIT}\b)?){{1,}})(?![\w.%]|\s*%)"
_NAMED = re.compile(
    rf"\b(?P<name>(?:(?:last|recent|first)\s+)?(?:steps?|iter(?:ation)?s?)(?:[ _-]?(?:times?|durations?))?)\b"
    rf"(?:\s*[(\[](?P<unit>{_UNIT})[)\]])?\s*(?:(?:is|are|was|were|at|of|now|about|around|took|takes|like|:|=|~)\s*)*"
    rf"{_LIST}",
    re.I,
)
"""Figures behind what they are of."""
_OF_A_STEP = re.compile(rf"{_LIST}\s*(?:/|per|an?|each)\s*(?:steps?|iter\w*)\b", re.I)
"""Figures before what they are of: "10.1 s, 9.9 s, 10.0 s per step"."""
_ALIKE = 2.0
"""Steps of one run differ by no more than this; what differs more are no steps in a row."""


def with_median_step(text: str) -> tuple[str, str | None]:
    """The text with one step in place of several, and what was read; ``None`` where it lists none."""
    for pattern in (_NAMED, _OF_A_STEP):
        if (found := pattern.search(text)) is not None and (steps := _steps(found)) is not None:
            figures, unit = steps
            step = f"{significant(median(figures), 4)} {unit}"
            said = f"Read as {len(figures)} steps of one run, {step} in the median:"
            return f"{text[: found.start()]}step time is {step}{text[found.end() :]}", said
    return text, None


def _steps(found: re.Match[str]) -> tuple[list[float], str] | None:
    """The figures of a list and their unit; without a unit they are seconds, if any of them is no whole number."""
    figures = [float(one) for one in re.findall(_FIGURE, found["figures"])]
    named = found.groupdict().get("unit") or next(
        iter(re.findall(rf"(?<=[\d\s]){_UNIT}\b", found["figures"], re.I)), ""
    )
    if min(figures) <= 0 or max(figures) > _ALIKE * min(figures):
        return None
    if not named and all(figure.is_integer() for figure in figures):
        return None
    return figures, "ms" if named.lower().startswith("m") else "s"
