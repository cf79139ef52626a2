"""What a text says of the architecture of the model: "tied embeddings", "8 kv heads", "vocab is 128k"."""

import re
from dataclasses import dataclass

_N = r"(?P<count>\d[\d,.]*)\s?(?P<thousands>k\b)?"
_SWITCHES: tuple[tuple[str, str, bool], ...] = (
    (
        "tied_embeddings",
        r"\buntied\b|\b(?:not|n't|never) (?:tied|tie|share)|\b(?:no|without) (?:weight )?ty(?:e?ing)\b",
        False,
    ),
    ("tied_embeddings", r"\btied?\b|\bweight[- ]tying\b|\bshare\w*\b", True),
    ("qk_norm", r"\b(?:no|without|not|n't) [\w ]{0,12}q-?k[- ]?norm", False),
    ("qk_norm", r"\bq-?k[- ]?norm", True),
    ("gated_mlp", r"\b(?:not gated|no gate|ungated|plain (?:mlp|relu|gelu))\b", False),
    ("gated_mlp", r"\b(?:swiglu|geglu|gated mlp)\b", True),
)  # fmt: skip
_OF_SWITCH = {"tied_embeddings": r"\bembed\w*|\blm[_ ]?head\b|\b(?:un)?embedding"}
_COUNTS: tuple[tuple[str, str], ...] = (
    ("kv_heads", rf"{_N} (?:kv|key[-/ ]value)[- ]?(?:heads?|groups?)|(?:kv heads?|query groups?) (?:is|are|=|of) {_N}"),
    ("heads", rf"{_N} (?:attention |query |q )?heads?\b"),
    ("head_dim", rf"head[_ ]dim(?:ension)? (?:is|=|of) {_N}"),
    ("layers", rf"{_N} layers?\b"),
    ("vocab", rf"vocab\w*(?: size)? (?:is|=|of|at) {_N}|{_N} (?:token )?vocab\w*"),
    ("experts", rf"{_N} (?:routed )?experts?\b"),
    ("d_model", rf"(?:hidden(?: size| dim)?|width|d_model|embed\w* dim\w*) (?:is|=|of) {_N}|{_N} wide\b"),
)
_ROUNDED = 0.03
"""Share by which a count in thousands may be off."""


@dataclass(frozen=True)
class ModelFact:
    """A field of the architecture with the value that is said."""

    field: str
    value: int
    rounded: bool = False

    @property
    def written(self) -> str:
        """``tied_embeddings=true``."""
        return f"{self.field}={written(self.value)}"

    def agrees(self, known: object) -> bool:
        """Whether a value on record is this one."""
        if self.rounded and isinstance(known, int) and known:
            return abs(self.value / known - 1) <= _ROUNDED
        return known == self.value


def written(value: object) -> str:
    """A value of the record."""
    return "unknown" if value is None else str(value).lower()


def model_facts(text: str) -> list[ModelFact]:
    """The fields that a text states, each once."""
    found: dict[str, ModelFact] = {}
    for field, words, value in _SWITCHES:
        of = _OF_SWITCH.get(field)
        if field not in found and (of is None or re.search(of, text, re.I)) and re.search(words, text, re.I):
            found[field] = ModelFact(field, value)
    for field, words in _COUNTS:
        match = re.search(re.sub(r"\?P<(?:count|thousands)>", "?:", words), text, re.I)
        number = re.search(_N, match.group()) if match else None
        if number is None or not (digits := number["count"].replace(",", "")).isdecimal():
            continue
        thousands = number["thousands"] is not None
        found.setdefault(field, ModelFact(field, int(digits) * (1000 if thousands else 1), thousands))
    return list(found.values())
