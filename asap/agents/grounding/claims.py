"""Words that claim something of a figure, and what a reference beside them must be to carry the claim."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

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


CLAIMS = (
    Claim("measured", ("measur", "observ", "benchmark", "profiled", "ran ", "took ", "achieved", "clocked", "traced",
                       "recorded", "tested", "timed ",
                       "profile", "confirm", "verif", "validat", "saw ", "seen "), "a measured figure of that plan"),
    Claim("compiled", ("compil",), "a compiled figure of that plan"),
    Claim("predicted", ("predict", "modelled", "modeled", "estimat", "forecast"), "a predicted figure of that plan"),
    Claim("certain", ("proven", "proves", "guarante", "certain", "surely", "undoubted", "definite", "always", "never",
                      "in production", "battle"), "nothing that an engine says"),
    Claim("enabled", ("enabled", "already", "switched on", "turned on", "is active", "is set", "in use"),
          "a setting of what runs now"),
    Claim("fits", ("fits", "fit ", "within hbm", "within memory"), "hbm or fits_odds of that plan"),
    Claim("overflows", ("out of memory", "oom", "overflow", "exceed"), "hbm or fits_odds of that plan"),
    Claim("better", ("faster", "quicker", "shorter", "less ", "sooner", "saves", "save ", "saving", "saved", "improv",
                     "gain", "reduc", "cuts ", "cut ", "lower", "speedup", "speed-up", "wins", "beats", "better"),
          "a comparison in which that plan takes less"),
    Claim("worse", ("slower", "longer", "more ", "loses", "lose ", "loss ", "lost ", "increas", "higher", "behind",
                    "worse", "costs", "adds", "grows", "rises"), "a comparison in which that plan takes more"),
    Claim("amount", ("half", "halv", "twice", "doubl", "tripl", "thrice", "quadrupl", "tenfold", "twofold",
                     "order of magnitude", "third of", "quarter of", "a third", "a quarter", "fifth of", "per cent",
                     "percent", "dozen",
                     "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred",
                     "thousand", "eleven", "twelve", "fifteen", "sixteen"), "the reference of a figure"),
)  # fmt: skip
"""In English; in other languages the printed provenance stands beside each reference, and nothing more is checked."""

_NEGATIONS = re.compile(r"\b(?:no|not|never|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE)
_OPPOSITE = {"better": "worse", "worse": "better", "fits": "overflows", "overflows": "fits"}


@dataclass(frozen=True)
class Made:
    """A claim that a sentence makes, and where."""

    claim: Claim
    at: int
    word: str


def claims(sentence: str) -> list[Made]:
    """What a sentence claims; a negation before a word turns it into its opposite."""
    text, found = sentence.lower() + " ", []
    for claim in CLAIMS:
        for stem in claim.stems:
            for match in _stem(stem).finditer(text):
                found.append(Made(_turned(claim, text[: match.start()]), match.start(), stem.strip()))
    return sorted(found, key=lambda one: one.at)


@cache
def _stem(stem: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w=-]){re.escape(stem)}")


def _turned(claim: Claim, before: str) -> Claim:
    near = " ".join(re.split(r"[,;:]", before)[-1].split()[-4:])
    kind = _OPPOSITE.get(claim.kind)
    return next(one for one in CLAIMS if one.kind == kind) if kind and _NEGATIONS.search(near) else claim


def carried(made: Made, subject: str | None, evidence: Evidence, fits: Callable[[str], bool | None]) -> bool:
    """Whether a reference of the sentence carries a claim on a plan.

    Args:
        made: the claim.
        subject: the plan that it is of; ``None``: whatever the figures are of.
        evidence: the references.
        fits: whether a plan is said to fit.
    """
    own = [one for one in evidence if subject is None or one[0] in {subject, "run", ""}]
    kinds = {figure.provenance for _, _, figure in own}
    match made.claim.kind:
        case "measured":
            stated = any(name.startswith("measured_") for _, name, _ in own)
            return stated or not kinds.isdisjoint({Provenance.MEASURED, Provenance.PRECEDENT})
        case "compiled":
            return Provenance.COMPILED in kinds
        case "predicted":
            return Provenance.MODELLED in kinds
        case "fits" | "overflows":
            of = {one for one, name, _ in own if name in {"hbm", "fits_odds"}}
            return bool(of) and all(fits(one) is (made.claim.kind == "fits") for one in of)
        case "better" | "worse":
            directions = _directions(own, evidence)
            return bool(directions) and directions == {made.claim.kind == "better"}
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
