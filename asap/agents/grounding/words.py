"""Words of a sentence: those that claim something of a figure, those that claim nothing, and all others.

A sentence stands as grounded where references carry each claim and no word is left over. No list can hold the words
by which something false can be said; so that which claims nothing is listed, and another word makes the sentence the
model's own. In other languages than English every sentence is the model's own; its figures are printed all the same.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from asap.answers.figure import CHANGE, Figure
from asap.core.units import Provenance

Evidence = Sequence[tuple[str, str, Figure]]
"""Subject, name and figure of each reference in a sentence."""


@dataclass(frozen=True)
class Claim:
    """Words of one meaning.

    Args:
        kind: what they claim.
        stems: beginnings of the words; a blank ends one.
        needs: in words, for the complaint.
    """

    kind: str
    stems: tuple[str, ...]
    needs: str


_FOLDER = Path(__file__).parent
CLAIMS = tuple(
    Claim(kind, tuple(one["stems"]), one["needs"])
    for kind, one in tomllib.loads((_FOLDER / "claims.toml").read_text(encoding="utf-8")).items()
)
NEUTRAL = frozenset((_FOLDER / "neutral.txt").read_text(encoding="utf-8").split())
"""Words that claim nothing of a figure: of grammar, of having a quantity, of advice, names of quantities."""

_NEGATIONS = re.compile(r"\b(?:no|not|never|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE)
_OPPOSITE = {"better": "worse", "worse": "better", "fits": "overflows", "overflows": "fits"}
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_ENDINGS = ("", "s", "es", "ing", "ly", "'s")
PROVENANCES = frozenset({"measured", "compiled", "predicted"})


@dataclass(frozen=True)
class Made:
    """A claim that a sentence makes, and where."""

    claim: Claim
    at: int
    end: int

    def word(self, sentence: str) -> str:
        """As it stands in the sentence."""
        return sentence[self.at : self.end].strip()


def claims(sentence: str) -> list[Made]:
    """What a sentence claims; a negation before a word turns it into its opposite."""
    text, found = sentence.lower() + " ", []
    for claim in CLAIMS:
        for stem in claim.stems:
            for match in _stem(stem).finditer(text):
                found.append(Made(_turned(claim, text[: match.start()]), *match.span()))
    return sorted(found, key=lambda one: one.at)


def unknown(sentence: str, made: Sequence[Made]) -> list[str]:
    """Words beside the claims that may say anything."""
    text = sentence.lower().replace("’", "'")
    for one in made:
        text = text[: one.at] + " " * (one.end - one.at) + text[one.end :]
    return [word for word in _WORD.findall(text) if not _is_neutral(word)]


def _is_neutral(word: str) -> bool:
    stems = [word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)]
    return any(stem in NEUTRAL or f"{stem}e" in NEUTRAL for stem in stems)


@cache
def _stem(stem: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w=-]){re.escape(stem.strip())}" + (r"(?!\w)" if stem.endswith(" ") else r"[^\W\d_]*"))


def _turned(claim: Claim, before: str) -> Claim:
    near = " ".join(re.split(r"[,;:]", before)[-1].split()[-4:])
    kind = _OPPOSITE.get(claim.kind)
    return next(one for one in CLAIMS if one.kind == kind) if kind and _NEGATIONS.search(near) else claim


def carried(
    made: Claim, subject: str | None, evidence: Evidence, fits: Callable[[str], bool | None], *, of_odds: bool = False
) -> bool:
    """Whether a reference of the sentence carries a claim on a plan.

    Args:
        made: the claim.
        subject: the plan that it is of; ``None``: whatever the figures are of.
        evidence: the references.
        fits: whether a plan is said to fit.
        of_odds: whether it is what odds are said of: "the odds that it is faster are".
    """
    own = [one for one in evidence if subject is None or one[0] in {subject, "run", ""}]
    kinds = {figure.provenance for _, _, figure in own}
    match made.kind:
        case "measured" | "past":
            stated = any(name.startswith("measured_") for _, name, _ in own)
            return stated or not kinds.isdisjoint({Provenance.MEASURED, Provenance.PRECEDENT})
        case "compiled":
            return Provenance.COMPILED in kinds
        case "predicted":
            return Provenance.MODELLED in kinds
        case "fits" | "overflows":
            of = {one for one, name, _ in own if name in {"hbm", "fits_odds"}}
            return bool(of) and all(fits(one) is (made.kind == "fits") for one in of)
        case "better" | "worse":
            odds = {True for _, name, _ in own if name == "faster_odds" and of_odds}
            directions = _directions(own, evidence) or odds
            return bool(directions) and directions == {made.kind == "better"}
        case _:
            return False


def _directions(own: Evidence, evidence: Evidence) -> set[bool]:
    """Whether the figures say less: changes by their sign, times beside the same figure of another plan."""
    found = {figure.value < 0 for _, _, figure in own if figure.unit == CHANGE and figure.value}
    found |= {figure.value > 0 for _, _, figure in own if figure.source.startswith("computed") and figure.value}
    if found:
        return found
    for subject, name, figure in own:
        others = {
            f.value
            for s, n, f in evidence
            if s != subject and n.removeprefix("measured_") == name.removeprefix("measured_")
        }
        found |= {figure.value < other for other in others if subject != "now" and other != figure.value}
    return found
