"""What cannot be changed or used: "we cannot change the batch", "model=1 is impossible", "no pipeline for us"."""

import re

from asap.chat.understanding.references.partial_plan import named_axes
from asap.chat.understanding.references.references import References
from asap.chat.understanding.statements.limits.bounds import bound_in, sense_of
from asap.chat.understanding.statements.limits.memory_limit import memory_limit_in
from asap.chat.understanding.words.dislikes import NAMED, dislikes
from asap.chat.understanding.words.worth import axes_in_short
from asap.evidence.claims import Claim
from asap.evidence.fact import HBM, MESH, NO_GRAPHS, NO_OFFLOAD, StatedFact
from asap.plans import Plan
from asap.plans.axes import Axis, axis_of

_WE = (
    r"(?:^\W*(?:(?:and|but|also|so|ok|please|sorry)\W+)*"
    r"|\b(?:i|we)(?:'d|'ll|'re|'m| am| are| would)?\s+(?:(?:really|just|still)\s+)*)"
)
_UNWILLING = (
    rf"{_WE}(?:(?:do|did|would)(?: not|n't) (?:really |even )?(?:wan(?:na|t)|like|care|plan|intend)"
    r"|(?:would )?(?:rather|prefer)(?: to)? not|not (?:willing|keen|going|happy|prepared|about|planning|eager)"
    r"|won't|will not|would(?: not|n't)|hate|refuse)(?: (?:(?:you|it|anyone) )?(?:to|be|see|have))*\s+"
)
"""One of us who would rather not: "i don't want to", "we'd rather not", "not willing to"."""
UNWILLING = re.compile(_UNWILLING, re.I)
"""Words of a wish by which something is refused, which are no doubt about it."""
_FIXED = re.compile(
    r"\b(?:can ?not|can't|must not|may not|mustn't|(?:are|is|am) not (?:allowed|able) to|unable "
    r"to)\s+(?:be\s+)?(?:\w+\s+)?"
    r"(?:chang\w*|touch\w*|alter\w*|modif\w*|increas\w*|rais\w*|mov\w+|vary|varied|adapt\w*)\b"
    r"|\b(?:must|has to|have to|needs? to|should)\s+(?:be\s+)?(?:stay|remain|keep|kept|be left)\b"
    r"|\b(?:is|are|stays?) (?:fixed|pinned|locked(?: in)?|hard-?(?:coded|wired)|baked in(?:to)?"
    r"|set in stone|given|frozen|constant|non-negotiable)\b"
    r"|\b(?:do not|don't|never) (?:touch|chang|alter|modif|mess with)\w*\b"
    rf"|{_UNWILLING}(?:touch|chang|alter|modif|tweak|fiddl|vary|mess(?:ing)? with|play(?:ing)? with)\w*\b"
    r"(?! (?:my|our) mind)"
    r"|^\W*(?:(?:and|but|also|ok)\W+)*(?:(?:please|pls|plz|let'?s|lets)\W+)(?:just )?"
    r"(?:keep|stick with|stay with|leave)\b(?! (?:in mind|going|it (?:short|simple|brief)))"
    r"|\bno way (?:(?:i|we)(?:'m|'re|'d| am| are)?|im) (?:going to |gonna )?(?:touch|chang|alter|modif|tweak|mess)\w*"
    r"|\b(?:no|without)(?: any)? (?:[\w-]+ ){1,2}?changes?\b|\b(?:no|without)(?: any)? changes? (?:to|of|in)\b"
    r"|\bno (?:more|extra|additional|other|new|different|further) "
    r"(?:chips?|[gt]pus?|hardware|nodes?|machines?|devices?|slices?|pods?)\b(?=\W*$|\s*[,;])"
    r"|\bno (?:touch|chang|alter|modif|tweak|fiddl|mess)\w*ing\b"
    r"|\b(?:off[- ]limits|hands off|untouchable)\b"
    r"|\bleav\w+\b[^?]*\b(?:alone|untouched|as (?:it )?is)\b"
    r"|\b(?:need|want)\w*\b[^?]*\bstay\b"
    r"|\b(?:must|ha(?:ve|s) to|need(?:s)? to) keep\b|\b(?:stuck|locked) (?:with|at|on|into)\b|\bbound to\b"
    r"|\bstays (?:(?:at|on) )?\d|\bstays(?: put| the same| unchanged| as (?:it )?is)?"
    r"(?:\W+(?:too|as well|also|then|please|tho(?:ugh)?))*\W*$"
    r"|^\W*(?:(?:and|but|with|please)\W+)*(?:(?:the|our|my)\s+)?[a-z]+(?:[- ][a-z]+)?\s+"
    r"(?:fixed|pinned|unchanged|untouched|constant|the same|as[- ]is)(?:\W+(?:please|pls|plz|thanks|thx))?\W*$",
    re.I,
)
_HOST_MEMORY = re.compile(r"\b(?:host|cpu)(?:'s)? (?:memory|mem|ram|dram)\b", re.I)
"""What is used or not, and never changed."""
_AS_VERBS = r"(?:offload|accumulat|interleav)\w*(?! (?:\w+ )?(?:much|more|a lot|everything|all)\b)"
"""Techniques that are verbs: "we can't offload", and not "we can't offload more"."""
_WHATEVER = (
    r"(?:anything|everything|all|any|whatever|every|the|of|them|plans?|proposals?|options?|ones?|those|config\w*)"
)
_EXCLUDED = re.compile(
    r"(?:^|[,;:.]|\b(?:so|then|please|just|and|let'?s|you can|must|should)\b)\W*"
    r"(?:drop|remove|exclude|skip|ditch|kill|lose|ban|nix|avoid|forget|scrap|discard|reject"
    r"|(?:filter|leave|rule|throw|take|kick|cross|weed) out|get rid of)\s+"
    rf"(?:{_WHATEVER}\s+)+(?:with|on|needing|using|involving|(?:that|which) \w+|uses?|needs?|has|have)\b",
    re.I,
)
"""Orders away all plans of a kind: "drop anything with vpp"."""
_RULED_OUT = re.compile(
    r"\b(?:impossible|off the table|broken|not an option|no option|ruled out|out of the question|forbidden"
    r"|(?:not|never|isn't|aren't|wasn't) (?:an option|allowed|possible|available|supported|implemented|enabled|usable)"
    r"|unsupported|unavailable"
    r"|(?:never|does not|doesn't|do not|don't|won't) works? (?:for us|here|(?:in|on|with) (?:our|my|this|the) \w+)"
    r"|(?<!we )(?<!i )(?<!you )(?<!they )(?:do not|don't|never) (?:even |ever |please )?(?:suggest|propose|offer"
    r"|consider|recommend|bring up|show me)"
    rf"|{_UNWILLING}(?:use|using|do|doing|run(?:ning)?(?: with)?|have|having|enabl\w+|deal with|go (?:for|with)"
    rf"|{_AS_VERBS})"
    rf"|{_WE}(?:do not|don't) (?:really |even )?want(?: any)?"
    r"(?! (?:to|it|that|this|you)\b|.* to (?:be|become|get|make|slow|cost)\b)"
    r"|(?:is|are|'s) (?:a )?(?:hard |clear |definite )?no(?: for (?:us|me|now))?(?=\W*$)"
    r"|(?:is |are )?not (?:going to happen|happening)|(?:isn't|aren't|is not|are not) something (?:we|i|that)"
    rf"|{_WE}(?:do not|don't) (?:ever )?do"
    rf"|{_WE}(?:do not|don't) have(?=.*\b(?:version|build|fork|stack|branch|install\w*|support)\b)"
    rf"|{_WE}(?:have no|lack) support for"
    rf"|{_WE}(?:would |want to |have to |need to |prefer to |rather )+avoid"
    rf"|(?:can ?not|can't) (?:\w+ )?(?:use|do|run|have|{_AS_VERBS})|cannot be used|(?:is |are )?(?:a )?"
    r"(?:no[- ]?go|non-?starter)|banned|taboo|must not use|not permitted|won't work for us|is excluded"
    r"|no (?:[\w-]+ ){1,2}(?:allowed|permitted))\b",
    re.I,
)
_REFUSED = re.compile(
    r"^\W*(?:(?:and|but|ok|well|oh|please|just)\W+)*nothing (?:with|that (?:uses|needs|has|does))\b"
    r"|^\W*(?:(?:and|but|ok|well|oh|please)\W+)*no\b[^?]*\b(?:please|for us|here|thanks)\b|\bplease no\b"
    r"|^\W*(?:no|nope|nah)\W+(?:(?:and|but|please|just)\W+)*no\b"
    rf"|^\W*(?:(?:and|but|ok)\W+)*no (?:\w+ )?(?:{_AS_VERBS}|\w+[ -]parallel\w*|remat\w*|recomput\w*|[tpecd]p|fsdp)"
    r"(?:\s*[,;:]|\s+(?:because|since|cause|as)\b)[^?]*$"
    rf"|^\W*(?:(?:and|but|ok|so|also|then|the)\W+)*{NAMED}\s+(?:(?:is|are)\s+)?"
    r"(?:no thank\w*|nope|nah|no way|out(?! of\b)(?:\W+(?:too|as well|also))*(?=\W*$|\s*[,;:]))",
    re.I,
)
"""A wish to be spared something: "no host offload please", "cp nope", or one with its reason: "no cp, our kernel
lacks it"."""
_LACKS = re.compile(
    r"\b(?:any|every|some)thing (?:but|except(?: for)?|besides|other than|apart from)\b|\b(?:way|ways) around\b"
    r"|\b(?:without|no(?! (?:\w+ )?ways?\b)|avoid\w*|skip\w*|free of|(?:do|does)(?: not|n't) (?:use|need|have|require"
    r"|want)|not (?:us|need)ing)\b",
    re.I,
)
"""What plans that are looked for are to lack: "anything without offload?"."""
_KEEPS = re.compile(
    r"\b(?:keep\w*|leav\w+|hold\w*|retain\w*|with the same|(?:un|not )touched)\b"
    r"|\b(?:without|not) (?:any )?(?:more|fewer|less|extra|additional|another|larger|bigger|smaller|longer|shorter"
    r"|(?:touch|chang|alter|modify|mess|add|increas|rais|reduc|cut|lower|shrink|grow|mov)\w*ing)\b",
    re.I,
)
"""What they are to keep: "a plan that keeps tp"."""
_STAYS = re.compile(
    r"\b(?P<name>[a-z]\w*)(?:[- ]parallel\w*|[- ]degree)?\s[^.?!\d]*\b(?:stay|remain|keep|kept|fixed|pinned|left)\w*"
    r"\s+(?:at\s+|to\s+)?(?P<count>\d{1,6})\b",
    re.I,
)
"""A degree that is kept: "tp has to stay at 8"."""
_AT = re.compile(
    r"(?<![\w=.-])(?P<name>tp|pp|ep|cp|dp|fsdp|tensor|pipeline)\s*[=:]?\s*(?P<count>\d{1,6})\b(?![.,]?\d|\s*[x%])", re.I
)
"""A degree beside a short name: "we need tp 8 to stay"."""
_TECHNIQUES: tuple[tuple[str, str], ...] = (
    (NO_OFFLOAD, r"\boffload\w*|\bhost memory\b"),
    (NO_GRAPHS, r"\bcuda[- ]?graphs?\b"),
    ("no accumulation", r"\baccumulat\w+|(?<!\d )\bmicro-?batch(?:es|ing)\b(?! of\b|\s*[=:])"),
    ("no virtual stages", r"\binterleav\w*|\bvirtual (?:pipeline )?stages?\b|\bv-?pp\b|\bpipeline[_ ]repeats\b"),
)
"""What can be ruled out beside axes. Recomputation is ruled out where it is refused, since "cannot use remat=full"
is of a policy."""
_RECOMPUTATION = re.compile(r"\bremat\w*\b(?!\s*=)|\brecomput\w*|\bcheckpointing\b", re.I)
_POLICY = re.compile(r"\b(?:full|selective|minimal|policy)\b", re.I)
_OTHER_CHIPS = re.compile(
    r"\b(?:more|other|another|new|different|bigger|larger|extra|additional|further)\b|\bhardware\b", re.I
)
"""Chips that are ruled out, and no chips that cannot do something."""
_HSDP = re.compile(r"\bhsdp\b|\b(?:plain|pure|replicated) (?:data[- ]?parallel\w*|d?dp)\b", re.I)
"""Plain data parallelism beside FSDP, whatever the run has."""
_TERM = re.compile(r"([a-z][\w.]*)\s*[=:]\s*(\d{1,6})\b", re.I)
_JOINED = re.compile(
    r"(?:\s+(?:size|length|policy|count))?\s*(?:,|/|&|\b(?:or|and|nor)\b)\s*(?:(?:or|and|the|our|any)\s+)*", re.I
)
"""What stands between two things that one verb is of."""
_THINGS = {
    "batch": r"(?<!micro)(?<!micro[- _])\bbatch\w*|\bgbs\b|\b\d+ (?:sequences|seqs)\b",
    "sequence": r"(?<!\d )\bseq(?:uences?)?\b|\bcontext\b",
    "hardware": r"\bhardware|\bchips?\b|\bslices?\b"
    r"|\bno (?:more|extra|additional|other|new|different|further) (?:[gt]pus?|nodes?|machines?|devices?|pods?)\b",
    "optimizer": r"\boptimi[sz]er|\badam\w*",
    "precision": r"\bprecision|\bbf16|\bfp8|\bint8|\bquant(?:s|i\w*)?\b", "model": r"\blayers\b|\barchitecture",
    "remat": r"\bremat\w*|\brecomput\w*|\bcheckpointing",
    "microbatches": r"\bmicro-?batch(?:es|ing)?\b|\baccumulat\w+",
    MESH: r"\bmesh|\blayout|\bsharding\b|\bparallelism\b",
}  # fmt: skip


def constraints_in(clause: str, refs: References, now: Plan | None, *, sought: bool = False) -> list[StatedFact]:
    """The constraints that a clause states; of several things that one verb is of, one each: "batch or sequence".

    Args:
        clause: no question, unless plans are looked for in it.
        refs: the plans and the wish in it.
        now: what runs, whose settings a constraint may keep.
        sought: it asks for plans that keep within the constraints: "anything without offload?".
    """
    excludes = (
        _RULED_OUT.search(clause)
        or _REFUSED.search(clause)
        or _EXCLUDED.search(clause)
        or (sought and (_LACKS.search(clause) or dislikes(clause)))
    )
    fixed = _FIXED.search(clause) or (sought and _KEEPS.search(clause))
    stated = StatedFact(claim=Claim.CONSTRAINT, words=clause)
    if excludes and (named := _degree(clause, refs)) is not None:
        return [stated.model_copy(update={"about": named[0], "value": float(named[1])})]
    if fixed and not sought and _HOST_MEMORY.search(clause):
        return [stated.model_copy(update={"about": NO_OFFLOAD})]
    if excludes and not fixed and (technique := _technique(clause)) is not None:
        return [stated.model_copy(update={"about": technique})]
    if (size := memory_limit_in(clause, sought=sought)) is not None:
        return [stated.model_copy(update={"about": HBM, "value": size, "bound": "most"})]
    if (limit := bound_in(clause)) is not None:
        named_so = {"about": _own_kind(limit.axis, now), "value": float(limit.degree), "bound": limit.sense}
        return [stated.model_copy(update=named_so)]
    if excludes and not (sought and fixed) and (axis := _axis_named(clause, refs, now)) is not None:
        return [stated.model_copy(update={"about": axis})]
    if not (_RULED_OUT.search(clause) or fixed):
        return []
    if fixed and (kept := _kept_degree(clause, refs, now)) is not None:
        return [stated.model_copy(update={"about": kept[0], "keeps": kept[1]})]
    axes: list[str] = [_own_kind(axis, now) for axis in axes_in_short(clause)] if fixed else []
    things = [one for one in _things_named(clause) if fixed or one != "hardware" or _OTHER_CHIPS.search(clause)]
    kept_as_now = {"remat", "microbatches", MESH, *axes}
    return [
        stated.model_copy(update={"about": thing, "keeps": now if thing in kept_as_now else None})
        for thing in [*axes, *things]
    ]


def orders_away(text: str) -> bool:
    """Whether it orders away all plans of a kind: "remove anything with offload"."""
    return _EXCLUDED.search(text) is not None


def _technique(clause: str) -> str | None:
    """The technique that a clause rules out."""
    refused = _REFUSED.search(clause) or _EXCLUDED.search(clause) or dislikes(clause)
    if refused and _RECOMPUTATION.search(clause) and not _POLICY.search(clause):
        return "no recomputation"
    return next((about for about, words in _TECHNIQUES if re.search(words, clause, re.I)), None)


def _things_named(clause: str) -> list[str]:
    """The first thing of the table that a clause names, and those that are joined to it."""
    found = [(thing, match) for thing, words in _THINGS.items() if (match := re.search(words, clause, re.I))]
    if not found:
        return []
    named, left = [found[0]], found[1:]
    while joined := [one for one in left if any(_are_joined(clause, one[1], other[1]) for other in named)]:
        named += joined
        left = [one for one in left if one not in joined]
    return [thing for thing, _ in named]


def _are_joined(clause: str, one: re.Match[str], other: re.Match[str]) -> bool:
    """Whether two words stand beside each other in a list."""
    first, second = sorted((one, other), key=lambda match: match.start())
    return _JOINED.fullmatch(clause[first.end() : second.start()]) is not None


def _kept_degree(clause: str, refs: References, now: Plan | None) -> tuple[Axis, Plan] | None:
    """The one axis that is to stay at the degree that is named, or at that of now."""
    most = now.devices if now is not None else None
    if (at := _STAYS.search(clause)) and (named := axis_of(at["name"])) is not None:
        if most is not None and int(at["count"]) > most:
            return None
        return named[1], Plan().with_ici(**{named[1]: int(at["count"])})
    degrees = [(place, int(one["count"])) for one in _AT.finditer(clause) if (place := axis_of(one["name"].lower()))]
    if len(degrees) == 1:
        (_, axis), count = degrees[0]
        return axis, Plan().with_ici(**{axis: count})
    if len(refs.written) == 1 and len(axes := named_axes(refs.written[0])) == 1:
        return axes[0], refs.written[0]
    axis = _axis_named(clause, refs, now)
    return (axis, now) if axis is not None and now is not None and not refs.written else None


def _axis_named(clause: str, refs: References, now: Plan | None) -> Axis | None:
    """The one axis that is named without a degree."""
    short = axes_in_short(clause)
    axis = refs.wish.axis if refs.wish is not None else short[0] if len(short) == 1 else None
    if _HSDP.search(clause):
        return "replica"
    return _own_kind(axis, now) if axis is not None else None


def _own_kind(axis: Axis, now: Plan | None) -> Axis:
    """The axis; "dp" is the kind of data parallelism that the run has."""
    own = now is not None and now.degree("replica") == 1 and now.degree("data") > 1
    return "data" if axis == "replica" and own else axis


def _degree(clause: str, refs: References) -> tuple[Axis, int] | None:
    """The one axis that is named with a degree: ``model=1``, "ep8"."""
    named = [(axis_of(key), int(degree)) for key, degree in _TERM.findall(clause)]
    if (
        not named
        and sense_of(clause) is None
        and len(refs.written) == 1
        and len(own := named_axes(refs.written[0])) == 1
    ):
        return own[0], refs.written[0].degree(own[0])
    axes: list[tuple[Axis, int]] = [(place[1], degree) for place, degree in named if place is not None]
    return axes[0] if len(axes) == 1 else None
