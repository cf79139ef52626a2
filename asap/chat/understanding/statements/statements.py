"""From a line to evidence: only what is stated as having happened, or as being so, about this run.

A question, a supposition, an opinion and hearsay about other runs are not evidence. What looks like evidence but lacks
something is answered with what is missing.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from asap.chat.understanding.quantities.amounts import LARGEST_AMOUNT
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.statements.bare_figures import bare_figure, figure_of_what
from asap.chat.understanding.statements.clauses import clause_facts, read_clause
from asap.chat.understanding.statements.corrections import correction_in
from asap.chat.understanding.statements.left_out_units import said_and_measured, unit_missing, with_units
from asap.chat.understanding.statements.now_and_then import now_and_then
from asap.chat.understanding.statements.paired_results import with_results_apart
from asap.chat.understanding.statements.plan_in_pieces import with_plan_in_one
from asap.chat.understanding.statements.quoted import JUDGED, without_quoted
from asap.chat.understanding.statements.sporadic import sporadic_in
from asap.chat.understanding.words.causes import host_memory, machine_failed
from asap.chat.understanding.words.doubt import has
from asap.chat.understanding.words.questions import asks_indirectly, is_question
from asap.core.numbers import LARGEST_COUNT
from asap.evidence.claims import MEASURED_CLAIMS, Claim
from asap.evidence.fact import HBM, StatedFact
from asap.plans import Plan

Item = TypeVar("Item")

_AGREES = (
    r"(?:(?:does|do|is|are)\s+(?:that|it|this)\s+)?(?:match\w*|agrees?|adds? up|fits? (?:yours|that)|sane|legit"
    r"|believable|credible|realistic|possible|sensible|consistent|in line|comparable|makes? sense"
    r"|close(?: enough)?|(?:way )?off"
    r"|too (?:high|low|good))(?:\s+(?:with|to|for|from)\s+(?:you|yours|your \w+|the (?:model|prediction)))?"
)
"""Asks if a figure can be: "sane?", "does that add up"."""
_REPORTED = re.compile(
    r"(?P<report>[^?,]*\b(?:measured|took|clocked|(?:we|i) (?:get|got|see|saw|had|log(?:ged)?|hit|reach(?:ed)?"
    r"|are at|sit at)|(?:we're|i'm) at|(?:our|the) [\w ]{1,30}(?:is|are|logs?|shows?|says|reports?))\b[^?]*?\d[^?,]*"
    r"|[^?,]*\d[\d.]*\s?k?\s?(?:tps|tokens/s|m?s|GiB|GB|%|[tp]-?flop[s/]*)(?!\w)[^?,]*),\s*"
    r"(?P<question>(?:(?:so|and|but) )*(?:what|is|does|do|how|why|which|should|can|where|any (?:idea|clue|thought|hint"
    r"|suggestion)s?)\b[^?]*\??|(?:(?:and|so) )?(?:mfu|tps|throughput|tok(?:en)?s?/s\S*|hbm|memory|fits|verdict)\s*\?"
    r"|(?P<judged>good|bad|ok(?:ay)?|normal|fine|slow|fast|expected|reasonable|plausible|right)\s*\?"
    rf"|{_AGREES}\s*\?)",
    re.I,
)
_ASKED_AFTER = re.compile(
    r"(?P<report>[^?]+?),\s+(?P<question>(?:does|do|did|is|isn't|are|was|would|will|can|could|should)\s+"
    r"(?:it|that|this|they|we|i)\b[^,?]*)",
    re.I,
)
"""What is asked at the end of a line without a question mark: "tp 4 mbs 2, does it fit"."""
_LEAST_LINES = 3
"""So many figures of one plan are lines of a log, and no corrections of each other."""
_CLAUSE = re.compile(
    r"(?<=[.!?;])(?<!\bno\.)(?<!\bnr\.)(?<!\bvs\.)\s+|\n+|,?\s+(?:but|however|although|yet|whereas|while)\s+"
    r"(?!\d|(?:not?|never) (?:lower|less|more|higher|fewer|smaller|larger|bigger|below|above|beyond|further)\b)",
    re.I,
)


_OF_THE_ADVICE = re.compile(
    r"\b(?:(?:that|this) (?:one|plan|proposal|option|config\w*|mesh|layout)"
    r"|tri(?:ed|es)|tested|test(?:ing)? it|appli(?:ed|es)|switched|followed|your"
    r"|you (?:suggest|propos|recommend)\w*)\b",
    re.I,
)
"""Says that what is reported is of what was proposed, before any plan was spoken of: "tried it, 5.1 s"."""


_EXPECTED = re.compile(
    r"\s*[,;(]?\s*\b(?:(?:vs\.?|versus|against|while|but|where|instead of|rather than|not|and)\s+)?(?:the\s+)?"
    r"(?:(?:(?:you|it|we|i|asap|engine|report)\s+(?:had\s+)?)?(?:expected|predicted|estimated|promised|forecast)"
    r"|you said)"
    r"(?:\s+(?:was|were|to be|it at))?\s+~?\d[\d.,]*\d?\s*(?:m?s|secs?|seconds?|%)?"
    r"(?:\s*/\s*(?:step|it(?:er)?))?(?!\w)\)?"
    r"|\s*[,;(]?\s*\b(?:vs\.?|versus|against|instead of|not)\s+(?:the\s+|your\s+)?~?\d[\d.,]*\d?\s*(?:m?s)?"
    r"\s+(?:that\s+)?(?:(?:you|it|we)\s+(?:had\s+)?)?(?:expected|predicted|estimated|promised|said)\b\)?",
    re.I,
)
"""What was predicted, beside what was measured: "took 19.1 s, expected 18.3"."""


_ENDS = re.compile(r"[.!?;\n]\s")
"""Where a sentence ends and another begins."""


@dataclass(frozen=True)
class Statements:
    """What a line reports, and what kept some of it from being evidence.

    Args:
        evidence: facts.
        supposed: facts that are only supposed.
        complaints: what is missing or cannot be, in whole sentences.
        impossible: facts with a number that none of them can have.
        incomplete: facts of a plan that was not named.
        corrected: facts on record that ``evidence`` corrects.
        unread: clauses that state nothing.
        figure: the clause of a figure without a unit.
    """

    evidence: tuple[StatedFact, ...] = ()
    supposed: tuple[StatedFact, ...] = ()
    complaints: tuple[str, ...] = ()
    impossible: tuple[StatedFact, ...] = ()
    incomplete: tuple[StatedFact, ...] = ()
    corrected: tuple[StatedFact, ...] = ()
    unread: tuple[str, ...] = ()
    figure: str | None = None


NOTHING_STATED = Statements()


@dataclass
class _Found:
    """Statements while clause after clause is read."""

    evidence: list[StatedFact] = field(default_factory=list)
    supposed: list[StatedFact] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    incomplete: list[StatedFact] = field(default_factory=list)
    corrected: list[StatedFact] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    figure: str | None = None


def read_statements(text: str, scene: Scene) -> Statements:
    """Take a line apart and keep what is stated as a fact; raises PlanError where a plan in it is malformed."""
    found = _Found()
    if scene.focus is None and _OF_THE_ADVICE.search(text):
        scene = replace(scene, focus=next(iter(scene.order), None))
    text = with_plan_in_one(with_results_apart(with_units(_EXPECTED.sub("", text))))
    parts = [each for part in _CLAUSE.split(text) for each in _report_and_question(part.strip())]
    parts = [each for part in parts for each in said_and_measured(part)]
    parts = [each for part in parts for each in now_and_then(part)]
    asks = is_question(text) and not _ENDS.search(text.strip())
    for part in filter(None, parts):
        if asks and not re.search(r"\d", part):
            found.unread.append(part)
            continue
        spoken_of = _read_clause(part, scene, found)
        scene = replace(scene, focus=spoken_of)
    blameless = [item for item in found.evidence if _is_no_fault_of_the_plan(item, text)]
    if blameless:
        names = ", ".join(str(item.plan) for item in blameless)
        found.complaints.append(
            f"That is not held against {names}: what you name is no fault of the plan. Nothing is recorded."
        )
    found.evidence, quoted = without_quoted(_of_one_plan(found.evidence), scene.study)
    found.complaints += quoted
    impossible = [item for item in (*found.evidence, *found.supposed) if not is_possible(item)]
    if impossible:
        said = "; ".join(map(str, impossible))
        found.complaints.append(
            f"Not recorded: {said}. A figure has to be above zero and at most {LARGEST_COUNT:,}: which is it?"
        )
    return Statements(
        evidence=_once([item for item in found.evidence if item not in blameless and is_possible(item)]),
        supposed=_once([item for item in found.supposed if is_possible(item)]),
        complaints=_once(found.complaints),
        impossible=_once(impossible),
        incomplete=_once(found.incomplete),
        corrected=_once(found.corrected),
        unread=tuple(found.unread),
        figure=found.figure,
    )


def which_plan(fact: StatedFact) -> str:
    """Asks for the plan of a fact that came without one."""
    return (
        f'Which plan? "{fact.claim.value.capitalize()}" counts once the plan is named, as in "proposal 2" or "the'
        ' current run".'
    )


def _report_and_question(part: str) -> tuple[str, ...]:
    """A report and what is asked about it in one sentence: "we measured 9 s, is that good?"."""
    found = _REPORTED.fullmatch(part) or _ASKED_AFTER.fullmatch(part)
    if found is None or is_question(found["report"]) or JUDGED.search(found["report"]):
        return (part,)
    if re.fullmatch(rf"{_AGREES}\s*\??", found["question"], re.I):
        return found["report"], "is that plausible?"
    judged = found.groupdict().get("judged")
    return found["report"], f"is that {judged}?" if judged else found["question"]


def _read_clause(text: str, scene: Scene, found: _Found) -> Plan | None:
    """Add what a clause states; returns the plan that was spoken of last."""
    indirect = asks_indirectly(text)
    imagined = has("supposed", text) and not indirect
    if indirect or (is_question(text) and not imagined):
        found.unread.append(text)
        return scene.focus
    if (correction := correction_in(text, scene)) is not None:
        wrong, right = correction
        found.corrected += [wrong] if wrong not in scene.refused else []
        found.evidence.append(right)
        return scene.focus
    clause = read_clause(text, scene)
    items = clause_facts(clause, scene, [*scene.known, *found.evidence, *found.supposed], imagined=imagined)
    facts = [item for item in items if isinstance(item, StatedFact) and not item.lacks_plan]
    if not imagined:
        nameless = [item for item in items if isinstance(item, StatedFact) and item.lacks_plan]
        found.incomplete += nameless
        found.complaints += map(which_plan, nameless)
    (found.supposed if imagined else found.evidence).extend(facts)
    found.complaints += [item for item in items if isinstance(item, str) and not imagined]
    if not imagined and (of_single_steps := sporadic_in(text, clause.amounts)) is not None:
        found.complaints.append(of_single_steps)
    if not items and not imagined and (unclear := unit_missing(text)) is not None:
        found.complaints.append(unclear)
    elif not items and not imagined and (figure := bare_figure(text)) is not None:
        found.complaints.append(figure_of_what(figure))
        found.figure = text
    elif not items:
        found.unread.append(text)
    return clause.refs.plans[-1] if clause.refs.plans else scene.focus


def _of_one_plan(facts: Sequence[StatedFact]) -> list[StatedFact]:
    """The facts, with the median in place of figures of one plan, as the lines of a log have them."""
    groups: dict[tuple[object, ...], list[StatedFact]] = defaultdict(list)
    for fact in facts:
        groups[fact.claim, fact.plan].append(fact)
    return [fact for group in groups.values() for fact in (_median(group) if _are_lines(group) else group)]


def _are_lines(group: Sequence[StatedFact]) -> bool:
    return len(group) >= _LEAST_LINES and group[0].claim in MEASURED_CLAIMS


def _median(group: Sequence[StatedFact]) -> list[StatedFact]:
    ordered = sorted(group, key=lambda fact: fact.value or 0.0)
    return [ordered[(len(ordered) - 1) // 2]]


def _is_no_fault_of_the_plan(item: StatedFact, text: str) -> bool:
    if item.claim is Claim.OUT_OF_MEMORY:
        return host_memory(text)
    return item.claim is Claim.FAILED and (has("outside_causes", text) or machine_failed(text))


def is_possible(item: StatedFact) -> bool:
    """Whether a fact has no number, or one that a run can have."""
    of_bytes = item.claim is Claim.HBM_BYTES or item.about == HBM
    largest = LARGEST_AMOUNT if of_bytes else LARGEST_COUNT
    if item.lacks_plan:
        return False
    return item.value is None or 0 < item.value <= largest


def _once(items: list[Item]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys(items))
