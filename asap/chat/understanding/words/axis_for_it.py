"""An axis that an "it" stands for: "that is why we have tp2. kill it?"."""

import re

_AXIS = re.compile(
    r"(?<![\w=-])(?:(?P<name>tp|pp|cp|ep|fsdp|hsdp)\d*|(?P<long>tensor|pipeline|context|expert)[ -]parallel\w*)\b", re.I
)
_REMOVES = re.compile(
    r"\b(?P<verb>kill|drop|remove|ditch|lose|scrap|dump|get rid of|turn off|disable)\s+(?:it|that)\b"
    r"|\b(?P<without>without)\s+(?:it|that)\b",
    re.I,
)


def with_axis_for_it(text: str) -> str:
    """The text with the one axis that stands before "kill it" in place of the "it"."""
    found = _REMOVES.search(text)
    if found is None:
        return text
    named = {(one["name"] or one["long"]).lower() for one in _AXIS.finditer(text[: found.start()])}
    if len(named) != 1:
        return text
    axis = named.pop()
    name = axis if axis in {"tp", "pp", "cp", "ep", "fsdp", "hsdp"} else f"{axis} parallelism"
    return f"{text[: found.start()]}{found['verb'] or found['without']} {name}{text[found.end() :]}"
