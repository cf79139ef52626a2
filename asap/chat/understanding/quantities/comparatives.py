"""A direction without a number, as in "fewer chips" or "if the batch were bigger"."""

import re

_MORE = r"more|extra|additional|bigger|larger|greater|higher|longer|deeper|wider|increas\w+|rais\w+|grow\w*"
_LESS = (
    r"fewer|less|smaller|lower|shorter|shallower|narrower|reduc\w+|decreas\w+|shrink\w*"
    r"|(?:that|so|this|as) many|all (?:of )?(?:these|those)"
)
_EITHER = rf"(?:(?P<more>{_MORE})|(?P<less>{_LESS}))"
_BEFORE = re.compile(rf"\b{_EITHER}\s+(?:(?:the|our|of|global|training|tpu|gpu)\s+){{0,2}}$", re.I)
_AFTER = re.compile(
    rf"^\s+(?:(?:is|was|were|be|are|gets|got|became|made|much|a|bit|even|to)\s+){{0,3}}{_EITHER}\b", re.I
)


def direction(text: str, start: int, end: int) -> float | None:
    """The factor that stands for the direction in which a text wants a thing to go; ``None`` if it names none.

    Args:
        text: a sentence.
        start: where the thing begins in it.
        end: where it ends.
    """
    found = _BEFORE.search(text[:start]) or _AFTER.search(text[end:])
    if found is None:
        return None
    return 2.0 if found["more"] else 0.5
