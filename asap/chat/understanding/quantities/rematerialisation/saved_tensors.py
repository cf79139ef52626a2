"""Rematerialisation by what is kept: "save only qkv", "recompute everything but attn out"."""

import re

from asap.plans.remat import Policy, Tensor, saved

_NAMES: tuple[tuple[str, tuple[Tensor, ...]], ...] = (
    (r"q/?k/?v(?:[_ ]?proj\w*)?", ("query", "key", "value")),
    (r"quer(?:y|ies)(?:[_ ]?proj\w*)?|q[_ ]proj", ("query",)),
    (r"keys?(?:[_ ]?proj\w*)?|k[_ ]proj", ("key",)),
    (r"values?(?:[_ ]?proj\w*)?|v[_ ]proj", ("value",)),
    (r"attn?(?:ention)?[_ -]?(?:out(?:puts?)?|context)|attention|attn|context", ("context",)),
    (r"o(?:ut)?[_ -]?proj\w*|output projection", ("out",)),
    (r"gate(?:[_ ]?proj\w*)?|mlpwi_0|w1", ("gate",)),
    (r"up(?:[_ -]?proj\w*)|mlpwi_1|w3", ("up",)),
)
_TENSOR = "|".join(f"(?:{words})" for words, _ in _NAMES)
_LIST = rf"(?:the\s+)?((?:{_TENSOR})\b(?:\s*(?:,|\+|&|\band\b)\s*(?:the\s+)?(?:{_TENSOR})\b)*)"
_KEEP = r"(?:sav|keep|stor|retain|checkpoint)(?:e|es|ing|s)?"
_KEPT = re.compile(
    rf"\b{_KEEP}\s+(?:only|just)\s+{_LIST}|\b(?:only|just)\s+{_KEEP}\s+{_LIST}"
    rf"|\b(?:recomput|rematerial)\w*\s+(?:everything|all)\s+(?:but|except)(?:\s+for)?\s+{_LIST}"
    rf"|\bsav(?:e|ing)\s+{_LIST}\W*$",
    re.I,
)


def saved_tensors_in(text: str) -> Policy | None:
    """The policy that keeps just the tensors that are named; ``None`` where a text names none to keep."""
    found = _KEPT.search(text)
    if found is None:
        return None
    words = next(filter(None, found.groups()))
    named = [
        tensor
        for names, tensors in _NAMES
        if re.search(rf"(?<![\w/])(?:{names})(?!\w)", words, re.I)
        for tensor in tensors
    ]
    return saved(named, (), inputs_on_host=False)
