"""Another model than the run's in a sentence: by its name, "qwen3-32b", or by its size alone, "a 70b model"."""

import re

from asap.models import Architecture, count_parameters, find_architecture

Spans = list[tuple[int, int]]

_NAME = re.compile(
    r"(?<![\w./-])(?P<name>[a-z]{2,}[\w.]*(?:[- ]\d[\d.]*)?[- ]?(?<![a-z])\d+(?:\.\d+)?(?:x\d+)?b(?:-a\d+b)?)(?!\w)",
    re.I,
)
_SIZE = re.compile(
    r"(?P<before>\b(?:for|an?|the|of|train\w*|about|with|is|was|were|and|on|if)\s+(?:(?:an?|the|our|dense)\s+)*)?"
    r"(?<![\w.$])(?P<size>\d+(?:\.\d+)?\s?b)\b(?P<after>\s*(?:model|llm|params?\b|parameters|dense|moe))?"
    r"(?!\s*(?:tok|/|bit|byte|sequences|samples))",
    re.I,
)
_NEAR = 0.1
"""Share by which a size may be rounded."""


def model_in(text: str) -> tuple[str | None, Spans]:
    """The model that a sentence names, or its size; ``None`` where it names none, and where it stands."""
    for found in _NAME.finditer(text):
        if find_architecture(found["name"]) is not None:
            return found["name"].lower(), [found.span()]
    for found in _SIZE.finditer(text):
        if found["before"] or found["after"]:
            return found["size"].replace(" ", "").lower(), [found.span("size")]
    return None, []


def other_model(name: str, now: Architecture | None) -> str | None:
    """The name, unless it is of the run's own model or of one that is not on record."""
    if now is None:
        return name if find_architecture(name) is not None else None
    if (size := _parameters(name)) is None:
        named = find_architecture(name)
        same = named is not None and _shape(named) == _shape(now)
        return None if same or (now.name is not None and _bare(name) == _bare(now.name)) else name
    own = count_parameters(now).total if not now.missing() else None
    return None if own is not None and abs(size - own) <= _NEAR * own else name


def model_of(name: str, now: Architecture | None) -> Architecture | None:
    """The architecture of a name; of a size, that of the run's own family; ``None`` where it is not known."""
    if _parameters(name) is None:
        return find_architecture(name)
    own = now.name if now is not None else None
    family = re.sub(r"\d+(?:\.\d+)?b\b.*$", "", own, flags=re.I) if own else None
    return find_architecture(f"{family}{name}") if family and family != own else None


def _parameters(name: str) -> float | None:
    return float(name.removesuffix("b")) * 1e9 if re.fullmatch(r"\d+(?:\.\d+)?b", name) else None


def _shape(model: Architecture) -> tuple[int | None, ...]:
    return model.layers, model.d_model, model.d_ff, model.experts


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
