"""From a message to evidence: only what is stated as having happened, or as being so, about this run.

A question, a supposition, an opinion and hearsay about other runs are not evidence. What looks like evidence but lacks
something is answered with what is missing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from asap.chat.evidence import Claim, StatedFact
from asap.chat.understanding.causes import host_memory, machine_failed
from asap.chat.understanding.claims import against_another, claim_in
from asap.chat.understanding.mentions import plans_mentioned, without_plans
from asap.chat.understanding.run_facts import LONGEST_WORDS, run_facts
from asap.chat.understanding.topics import is_question
from asap.core.numbers import LARGEST_COUNT
from asap.core.text import plain
from asap.plans import Plan
from asap.plans.validity import violations
from asap.study.study import Study

Item = TypeVar("Item")

_CLAUSE = re.compile(r"(?<=[.!?;])\s+|\n+|,?\s+(?:but|however|although|yet|whereas|while)\s+(?!\d)", re.I)
_PART = re.compile(r",\s*(?:and\s+)?|\s+and\s+", re.I)
_SUPPOSED = re.compile(
    r"\b(?:if|suppose|supposing|imagine|assume|assuming|unless|pretend|hypothetically|whether|in case"
    r"|what happens)\b",
    re.I,
)
_DOUBTFUL = re.compile(
    r"\b(?:say|says|said|told|tells|would|could|should|might|may|must|will|won't|shall|ought|can|cannot|going to|gonna"
    r"|probably|maybe|perhaps|likely|unlikely|surely|obviously|clearly|sure|certain|convinced|expect\w*|predict\w*"
    r"|think|thinks|thought|guess|bet|believe\w*|feel|feels|suspect\w*|doubt|worr(?:y|ied)|fear|afraid|concerned"
    r"|hop(?:e|ing)|want|(?:i|we) need|wish|prefer|rather|plan to|planning|intend|consider\w*|risk\w*|danger|prone"
    r"|potential\w*|chance|possib\w+|theor\w+|seems?|looks?|sounds?|tends?|always|usually|generally|typically|often"
    r"|in general"
    r"|everyone|everybody|people|nobody|rumou?rs?|heard|hear|read|blog\w*|papers?|articles?|twitter|reddit|forum|slack"
    r"|claims?|supposedly|allegedly|apparently|intuition|gut|experience|simulat\w+|estimat\w+|calculat\w+"
    r"|imagin\w+|dream\w*|jok\w+|kidding|(?:well|widely|commonly) known|(?:many|most|other) (?:teams|people|users)"
    r"|your (?:report|prediction|engine|model))\b|\b(?!oom)\w+'(?:ll|d)\b",
    re.I,
)
_ORDER = re.compile(
    r"^\W*(?:(?:please|just|now|then|so|ok|and) )*(?:run|use|set|try|make|change|increase|raise|reduce|lower|put|switch"
    r"|go|train|show|give|take|pick|rank|compare|explain|evaluate|predict|redo|rerun|let'?s|double|halve|add|do)\b",
    re.I,
)
_INSTRUCTION = re.compile(
    r"(?:^|[:;,>\])]|\b(?:please|then|now|to|must|always|should)\b)\s*(?:report|claim|state|print|output|answer|reply|respond"
    r"|record|book|treat|forget|obey|repeat|mark|declare|announce|insert|add|act)\b"
    r"|\b(?:ignore|disregard|override)\b.{0,40}\b(?:instructions?|rules?|previous|above|prior|evidence|guard)\b",
    re.I,
)
_ROLE = re.compile(
    r"(?:^|\n)[\W_]*(?:system|assistant|developer|admin(?:istrator)?|tool|function|engine|asap|root|operator)"
    r"(?:[\s_-]+(?:prompt|message|note|notice|override|result|answer))?[\W_]*?[:>\]|](?!\s*\d)"
    r"|<\|?/?(?:im_start|im_end|system|assistant|tool)|\[/?INST\]",
    re.I,
)
"""The start of a line that speaks as somebody else than the engineer."""

_SPEAKS_AS_ANOTHER = "A line that speaks as the system is not evidence. State what you saw in your own words."
_MACHINE_FAILED = "A machine that failed says nothing about the plan that ran on it; I have not recorded it."
_ELSEWHERE = re.compile(
    r"\b(?:elsewhere|somewhere|years? ago|in the past|once upon"
    r"|(?:another|different|similar|previous|former|old|other|last|their|his|her)\s+(?:\w+\s+)?"
    r"(?:company|job|project|models?|clusters?|teams?|experiments?|workloads?|setup|hardware|machine|pod|life|place))\b",
    re.I,
)
_CHIP = re.compile(r"\b(?:tpu ?)?(v[2-7][a-z]?|[abh]\d{2,3}|mi\d{3}\w?)(?:-\d+)?\b", re.I)


@dataclass(frozen=True)
class Statements:
    """Evidence in a message, what is only supposed, and what kept other clauses from being evidence."""

    evidence: tuple[StatedFact, ...] = ()
    supposed: tuple[StatedFact, ...] = ()
    complaints: tuple[str, ...] = ()


def speaks_as_another(text: str) -> bool:
    """Whether a line of a message claims to come from somebody else than the engineer."""
    return _ROLE.search(text) is not None


def read_statements(text: str, study: Study, standing: Sequence[Plan], focus: Plan | None) -> Statements:
    """Take a message apart and keep what is stated as a fact.

    Raises:
        PlanError: a plan in it is malformed.
    """
    if speaks_as_another(text):
        return Statements(complaints=(_SPEAKS_AS_ANOTHER,))
    broken = machine_failed(text)
    evidence: list[StatedFact] = []
    supposed: list[StatedFact] = []
    complaints: list[str] = []
    for clause in filter(None, map(str.strip, _CLAUSE.split(text))):
        plans = plans_mentioned(clause, standing, focus, None)
        focus = plans[-1] if plans else focus
        imagined = _SUPPOSED.search(clause) is not None
        if not imagined and (is_question(clause) or _is_no_report(clause) or _of_another_run(clause, study)):
            continue
        found = _stated(clause, plans, study, standing, focus)
        found = [_MACHINE_FAILED if _is_of_the_machine(item, clause, broken) else item for item in found]
        facts = [item for item in found if isinstance(item, StatedFact)]
        (supposed if imagined else evidence).extend(facts)
        complaints += [item for item in found if isinstance(item, str) and not imagined]
    return Statements(_once(evidence), _once(supposed), _once(complaints))


def _once(items: list[Item]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys(items))


def _is_no_report(clause: str) -> bool:
    return any(pattern.search(clause) for pattern in (_DOUBTFUL, _ORDER, _INSTRUCTION))


def _is_of_the_machine(item: StatedFact | str, clause: str, broken: bool) -> bool:
    if isinstance(item, str):
        return False
    return (item.claim is Claim.FAILED and broken) or (item.claim is Claim.OUT_OF_MEMORY and host_memory(clause))


def _of_another_run(clause: str, study: Study) -> bool:
    if _ELSEWHERE.search(clause):
        return True
    own = study.slice.chip.name.lower() if study.slice else ""
    return any(not own.startswith(chip.lower()) for chip in _CHIP.findall(clause))


def _stated(
    clause: str, plans: Sequence[Plan], study: Study, standing: Sequence[Plan], focus: Plan | None
) -> list[StatedFact | str]:
    """The facts of a clause; where several plans were measured, those of each part of it."""
    of_run = run_facts(clause, study)
    if of_run:
        return of_run
    claim, value = claim_in(without_plans(clause))
    if claim is Claim.STEP_TIME and not plans:
        plans = plans_mentioned(clause, (), None, study.plan)
    if value is None or len(plans) < 2 or against_another(clause):
        return _of_plans(clause, claim, value, plans, study)
    found: list[StatedFact | str] = []
    for part in _PART.split(clause):
        part_claim, amount = claim_in(without_plans(part), happened=True)
        of_part = plans_mentioned(part, standing, None, None)
        if amount is None or len(of_part) != 1:
            return ["One measurement per sentence, please, with its plan: it is not clear which figure is whose."]
        found += _of_plans(part, part_claim, amount, of_part, study)
    return found


def _of_plans(
    clause: str, claim: Claim | None, value: float | None, plans: Sequence[Plan], study: Study
) -> list[StatedFact | str]:
    if claim is None:
        return []
    if not plans:
        return [f'Which plan? "{claim.value.capitalize()}" counts once the plan is named, as in "proposal 2 …".']
    if claim in {Claim.SLOWER, Claim.FASTER, Claim.RELATIVE} and (len(plans) > 1 or against_another(clause)):
        return ["A plan is compared with what runs now: state the step time of each in seconds."]
    words = plain(clause, LONGEST_WORDS)
    return [_checked(StatedFact(claim=claim, plan=plan, value=value, words=words), study) for plan in plans]


def _checked(item: StatedFact, study: Study) -> StatedFact | str:
    assert item.plan is not None
    plan = item.plan.completed_by(study.plan)
    broken = violations(plan, study.constraints)
    if broken:
        return f"{plan} cannot have run here: {'; '.join(v.sentence for v in broken)}. I have not recorded it."
    if plan == study.plan and item.claim is not Claim.STEP_TIME:
        return f"{plan} is the plan that the profile shows running; I have not recorded that it {item.claim.value}."
    if item.value is not None and not 0 < item.value <= LARGEST_COUNT:
        return f"A measurement is above zero and at most {LARGEST_COUNT:,}; I have not recorded it."
    return item.model_copy(update={"plan": plan})
