"""Words of a sentence: those that claim something of a figure, those that claim nothing, and all others.

A sentence stands as grounded where references carry each claim and no word is left over. No list can hold the words
by which something false can be said; so that which claims nothing is listed, and another word makes the sentence the
model's own. In other languages than English every sentence is the model's own; its figures are printed all the same.
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
    Claim("measured", ("measur", "observ", "benchmark", "profiled", "timed ", "clocked"),
          "a measured figure of that plan"),
    Claim("past", ("was ", "were ", "took ", "ran ", "had "), "a measured figure of that plan"),
    Claim("compiled", ("compil",), "a compiled figure of that plan"),
    Claim("predicted", ("predict", "modelled", "modeled", "estimat", "forecast"), "a predicted figure of that plan"),
    Claim("enabled", ("enabled", "already", "switched on", "turned on", "is active", "is set", "in use"),
          "a setting of what runs now"),
    Claim("fits", ("fits", "fit ", "within hbm", "within memory"), "hbm or fits_odds of that plan"),
    Claim("overflows", ("out of memory", "oom", "overflow", "exceed"), "hbm or fits_odds of that plan"),
    Claim("better", ("faster", "quicker", "shorter", "less ", "sooner", "saves", "save ", "saving", "improv", "gain",
                     "reduc", "cuts ", "cut ", "lower", "speedup", "speed-up", "beats", "better", "help"),
          "a comparison in which that plan takes less"),
    Claim("worse", ("slower", "longer", "more ", "loses", "lose ", "loss ", "increas", "higher", "behind", "worse",
                    "costs", "cost ", "adds", "add ", "grows", "rises"), "a comparison in which that plan takes more"),
)  # fmt: skip

NEUTRAL = frozenset(
    """
    a an the this that these those it its they their them itself themselves i i'd i'll i'm i've my me mine we our
    us we'd we'll you your you'd you'll what which whichever whatever who whose whom when where how why if whether
    unless then than as at by for from in into of off on onto to with within over under between per up down out
    across against along among beside besides about above below around near nearly roughly approximately circa
    before after during until till through throughout towards toward upon via plus minus versus vs beyond despite
    except regarding concerning according given each both either every all any some several and or nor but while
    whereas though although however so because since hence therefore accordingly not once also too only just still
    yet here there again instead rather maybe perhaps probably possibly likely quite fairly simply basically
    essentially overall generally mostly namely respectively together apart far afterwards meanwhile finally lastly
    firstly secondly otherwise else soon later early earlier right first last next other another one now today
    currently please yes ok okay hi hello thanks well e.g i.e etc am is are be been being become has have having do
    does doing don't doesn't isn't aren't wouldn't shouldn't can could may might must should would will shall let
    let's accept agree amount assume ask avoid begin begun believe bet bring calculate call check choose come
    compare compared compute computed consider continue decide depend describe discuss end evaluate expect expected
    explain favour favor figure find follow get give go guess hear hope imply include keep know land launch lead
    leave lie like list look make mark mean mention move name need note offer open pay pick place plan point prefer
    present put quote quoted rank read reach reckon recommend recommended remain repeat replace reply request
    require rest run runs said say schedule see select send set settle shorten sit skip spend stand start stay
    stick stop suggest suggested sum suppose suspect swap switch take talk tell test think told total try turn use
    want watch weigh wish write account addition advice alternative answer attempt average baseline basis bit
    budget candidate case chance change chip choice comment comparison conclusion config configuration context core
    detail device difference direction doubt effect engine estimate evaluation example expectation experiment
    fraction host idea impact incumbent information interval item iteration job layout likelihood line matter
    memory mesh message millisecond minute model moment number odds opinion option order part position prediction
    preference probability proposal proposed quantity question range rate reading reason recommendation remainder
    row second section setup shape share sharding shot side situation size sort state step suggestion summary table
    term thing thought throughput time trade-off trial type uncertainty unit value version view way word big close
    comparable current different due entire extra fair final fine full further general good initial interesting
    large long main modest necessary new nice old own particular plain possible potential previous promising
    reasonable relative relevant remaining respective sensible separate short simple single small specific
    tentative uncertain unsure typical whole worth worthwhile
    """.split()  # noqa: SIM905
)
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
