"""Claims of a sentence that a figure can refute: provenance, direction, fit, certainty, settings, amounts in words.

All other words are free: they are the model's own, which is said wherever words of a model are shown, and behind
each figure among them code prints what it is and whether it was measured. A cause or an opinion no figure can refute.
"""

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
    Claim("measured", ("measur", "observ", "witness", "benchmark", "profiled", "a profile of", "timed ", "clocked",
                       "stopwatch", "logged", "log shows", "logs show", "dashboard", "recorded", "in production",
                       "in practice", "empiric", "confirm", "verified", "validated", "vouch", "we are running",
                       "our run", "our own run", "saw ", "seen "),
          "a measured figure of that plan"),
    Claim("past", ("was ", "were ", "took ", "ran ", "had ", "got ", "gave ", "hit ", "reached ", "achieved ",
                   "finished ", "came ", "went ", "fell ", "dropped ", "showed "), "a measured figure of that plan"),
    Claim("certain", ("guarantee", "always ", "never ", "proven", "proves ", "certain ", "certainly", "definite",
                      "undoubted", "undisputed", "bulletproof", "optimal", "optimum", "no risk", "risk-free"),
          "odds: no prediction is certain"),
    Claim("compiled", ("compil", "xla itself", "xla reports", "xla says"), "a compiled figure of that plan"),
    Claim("predicted", ("predict", "modelled", "modeled", "estimat", "forecast"), "a predicted figure of that plan"),
    Claim("enabled", ("enabled", "already", "switched on", "turned on", "is active", "is set", "in use", "is live"),
          "a setting of what runs now"),
    Claim("fits", ("fits", "fit ", "within hbm", "within memory"), "hbm or fits_odds of that plan"),
    Claim("overflows", ("out of memory", "oom", "overflow", "exceed"), "hbm or fits_odds of that plan"),
    Claim("better", ("faster", "quicker", "shorter", "less ", "sooner", "saves", "save ", "saving", "improv", "gain",
                     "reduc", "cuts ", "cut ", "lower", "speedup", "speed-up", "beats", "better", "help", "trim",
                     "upside", "outpace", "outperform", "shrink"),
          "a comparison in which that plan takes less"),
    Claim("cost", ("costs", "cost "), "its time, or a comparison in which that plan takes more"),
    Claim("worse", ("slower", "longer", "more ", "loses", "lose ", "loss ", "increas", "higher", "behind", "worse",
                    "adds", "add ", "grows", "rises", "penalt", "downside", "drag", "regress", "degrad"),
          "a comparison in which that plan takes more"),
)  # fmt: skip

_COUNTS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|hundred|thousand"
_PARTS = "third|quarter|fifth|sixth|seventh|eighth|ninth|tenth|hundredth"
_AMOUNT = re.compile(
    rf"\b(?:half|halves?|halv(?:ed|ing)|(?:doubl|tripl|quadrupl)(?:e|es|ed|ing)|twice|thrice"
    rf"|(?:{_COUNTS})(?:-?fold| times| per ?cent)|(?:a|one|two|three|four) (?:{_PARTS})s?"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:[- ]\w+)?|dozens?|hundreds|thousands)\b"
)
AMOUNT = Claim("amount", (), "a reference: amounts in words are none")
_NEGATIONS = re.compile(r"\b(?:no|not|never|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:if|suppose|assuming|imagine|would|could)\b")
_OPPOSITE = {"better": "worse", "worse": "better", "fits": "overflows", "overflows": "fits"}
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
    """What a sentence claims; a negation before a word turns it into its opposite, or takes it away."""
    text = sentence.lower() + " "
    found = [Made(AMOUNT, *match.span()) for match in _AMOUNT.finditer(text)]
    for claim in CLAIMS:
        for stem in claim.stems:
            for match in _stem(stem).finditer(text):
                if turned := _turned(claim, text[: match.start()]):
                    found.append(Made(turned, *match.span()))
    return sorted(found, key=lambda one: one.at)


@cache
def _stem(stem: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w=-]){re.escape(stem.strip())}" + (r"(?!\w)" if stem.endswith(" ") else r"[^\W\d_]*"))


def _turned(claim: Claim, before: str) -> Claim | None:
    if claim.kind == "past" and _CONDITION.search(before):
        return None
    near = " ".join(re.split(r"[,;:]", before)[-1].split()[-4:])
    if not _NEGATIONS.search(near):
        return claim
    return next((one for one in CLAIMS if one.kind == _OPPOSITE.get(claim.kind)), None)


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
        case "cost":
            directions = _directions(own, evidence, beside_others=False)
            return bool(own) and directions <= {False}
        case _:
            return False


def _directions(own: Evidence, evidence: Evidence, *, beside_others: bool = True) -> set[bool]:
    """Whether the figures say less: changes by their sign, times beside the same figure of another plan."""
    found = {figure.value < 0 for _, _, figure in own if figure.unit == CHANGE and figure.value}
    found |= {figure.value > 0 for _, _, figure in own if figure.source.startswith("computed") and figure.value}
    if found or not beside_others:
        return found
    for subject, name, figure in own:
        others = {
            f.value
            for s, n, f in evidence
            if s != subject and n.removeprefix("measured_") == name.removeprefix("measured_")
        }
        found |= {figure.value < other for other in others if subject != "now" and other != figure.value}
    return found
