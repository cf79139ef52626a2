"""From a message to evidence: only what is stated as having happened, or as being so, about this run.

A question, a supposition, an opinion, hearsay about other runs and a plan without a subject are none. What looks like
evidence and lacks something is sent back with what would make it evidence.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from asap.agents.chat.claims import against_another, claim_in
from asap.agents.chat.evidence import Claim, Evidence
from asap.agents.chat.reading import plans_mentioned, without_plans
from asap.agents.chat.topics import is_question
from asap.agents.desk import read_plan
from asap.core.text import plain
from asap.diagnosis.study import Study
from asap.plans import Plan
from asap.plans.validity import violations

LONGEST_WORDS = 300
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
_ELSEWHERE = re.compile(
    r"\b(?:elsewhere|somewhere|years? ago|in the past|once upon"
    r"|(?:another|different|similar|previous|former|old|other|last|their|his|her)\s+(?:\w+\s+)?"
    r"(?:company|job|project|models?|clusters?|teams?|experiments?|workloads?|setup|hardware|machine|pod|life|place))\b",
    re.I,
)
_CHIP = re.compile(r"\b(?:tpu ?)?(v[2-7][a-z]?|[abh]\d{2,3}|mi\d{3}\w?)(?:-\d+)?\b", re.I)
_FILLER = r"(?:now|actually|really|only|exactly|not \d+ ?(?:,|but))\s+"
_COUNT = rf"(?:[\s_]*size)?(?:\s+(?:we \w+ (?:with )?)?(?:is|was|has been|=|of|at))*\s*[=:]?\s*(?:{_FILLER})*"
_BATCH = re.compile(
    rf"(?<![a-z])(?:batch|gbs){_COUNT}(\d+)\b(?!\s*(?:k|m|million|tokens|ms|s\b|%|\.\d))"
    r"|\b(\d+)\s+(?:sequences (?:per|a|each) (?:step|batch)\b|(?:is|as) (?:our|the|its) (?:global )?batch)",
    re.I,
)
_PER_DEVICE = re.compile(r"\bper[- _](?:device|chip|gpu|core|tpu)(?![a-z])|\bmicro[- ]?batch", re.I)
_SEQUENCE = re.compile(
    rf"\b(?:sequences?|context|seq\w*|max_target_length)(?:[\s_]*(?:len\w*|window))?{_COUNT}(\d+)\s*(k)?\b(?!-way)"
    r"|\b(?:at|with) (?:an? )?(\d+)\s*(k)?(?:[- ]tokens?)? (?:context|sequences?|seq)",
    re.I,
)
_OURS = re.compile(
    r"\b(?:we|we're|our|ours|my|i|the|it|its|this)\b"
    r"|^\W*(?:correction|update|fyi|note|global|per[- _]device|batch|gbs|seq\w*|context|max_target)",
    re.I,
)
_RUNNING = re.compile(
    r"\b(?:we|i) (?:now |currently |actually |really )*(?:run|use|train with|are running|are on)\b"
    r"|\bour (?:current |actual )?(?:plan|mesh|sharding|baseline)\s+(?:now |actually |really )?is\b|\bwhat runs is\b",
    re.I,
)


@dataclass(frozen=True)
class Testimony:
    """Evidence in a message, what is only supposed, and what kept other clauses from being evidence."""

    evidence: tuple[Evidence, ...] = ()
    supposed: tuple[Evidence, ...] = ()
    complaints: tuple[str, ...] = ()


def hear(text: str, study: Study, standing: Sequence[Plan], focus: Plan | None) -> Testimony:
    """Take a message apart and keep what is stated as a fact.

    Raises:
        PlanError: a plan in it is malformed.
    """
    evidence: list[Evidence] = []
    supposed: list[Evidence] = []
    complaints: list[str] = []
    for clause in filter(None, map(str.strip, _CLAUSE.split(text))):
        plans = plans_mentioned(clause, standing, focus, None)
        focus = plans[-1] if plans else focus
        imagined = _SUPPOSED.search(clause) is not None
        if not imagined and (is_question(clause) or _is_no_report(clause) or _of_another_run(clause, study)):
            continue
        found = _stated(clause, plans, study, standing, focus)
        facts = [item for item in found if isinstance(item, Evidence)]
        (supposed if imagined else evidence).extend(facts)
        complaints += [item for item in found if isinstance(item, str) and not imagined]
    return Testimony(_once(evidence), _once(supposed), _once(complaints))


def _once(items: list[Item]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys(items))


def _is_no_report(clause: str) -> bool:
    return _DOUBTFUL.search(clause) is not None or _ORDER.search(clause) is not None


def _of_another_run(clause: str, study: Study) -> bool:
    if _ELSEWHERE.search(clause):
        return True
    own = study.slice.chip.name.lower() if study.slice else ""
    return any(not own.startswith(chip.lower()) for chip in _CHIP.findall(clause))


def _stated(
    clause: str, plans: Sequence[Plan], study: Study, standing: Sequence[Plan], focus: Plan | None
) -> list[Evidence | str]:
    """The facts of a clause; where several plans were measured, those of each part of it."""
    of_run = _of_the_run(clause, study)
    if of_run:
        return of_run
    claim, value = claim_in(without_plans(clause))
    if claim is Claim.STEP_TIME and not plans:
        plans = plans_mentioned(clause, (), None, study.plan)
    if value is None or len(plans) < 2 or against_another(clause):
        return _of_plans(clause, claim, value, plans, study)
    found: list[Evidence | str] = []
    for part in _PART.split(clause):
        told, amount = claim_in(without_plans(part), happened=True)
        of_part = plans_mentioned(part, standing, None, None)
        if amount is None or len(of_part) != 1:
            return ["One measurement a sentence, please, with its plan: I cannot tell which figure belongs to which."]
        found += _of_plans(part, told, amount, of_part, study)
    return found


def _of_the_run(clause: str, study: Study) -> list[Evidence | str]:
    rest, words = without_plans(clause), plain(clause, LONGEST_WORDS)
    found: list[Evidence | str] = []
    if not _OURS.search(rest):
        return found
    if (batch := _BATCH.search(rest)) and not _denied(rest[: batch.start()]):
        found.append(_batch(int(batch[1] or batch[2]), bool(_PER_DEVICE.search(rest)), study, words))
    if (sequence := _SEQUENCE.search(rest)) and not _denied(rest[: sequence.start()]):
        length = int(sequence[1] or sequence[3]) * (1024 if sequence[2] or sequence[4] else 1)
        found += [Evidence(claim=Claim.SEQUENCE, value=float(length), words=words)] if length else []
    if _RUNNING.search(rest) and claim_in(rest) == (None, None):
        plans = plans_mentioned(clause, (), None, None)
        whole = [read_plan(study, str(plan)) for plan in plans[:1] if plan.devices > 1]
        found += [_running(plan, study, words) for plan in whole]
    return found


def _denied(text: str) -> bool:
    return re.search(r"\b(?:not|never|no longer)\b|n't\b", text, re.I) is not None


def _running(plan: Plan, study: Study, words: str) -> Evidence | str:
    broken = violations(plan, study.constraints)
    if broken:
        return f"{plan} cannot be what runs here: {'; '.join(v.sentence for v in broken)}. I have not recorded it."
    return Evidence(claim=Claim.INCUMBENT, plan=plan, words=words)


def _batch(count: int, per_device: bool, study: Study, words: str) -> Evidence | str:
    devices = study.constraints.devices_per_slice
    if count == 0 or (per_device and devices is None):
        return "A batch per device says the global batch only where the number of devices is on record."
    sequences = count * (devices or 1) * (study.constraints.slices or 1) if per_device else count
    return Evidence(claim=Claim.BATCH, value=float(sequences), words=words)


def _of_plans(
    clause: str, claim: Claim | None, value: float | None, plans: Sequence[Plan], study: Study
) -> list[Evidence | str]:
    if claim is None:
        return []
    if not plans:
        return [f'Of which plan? "{claim.value.capitalize()}" counts once it is named, as in "proposal 2 …".']
    if claim in {Claim.SLOWER, Claim.FASTER, Claim.RELATIVE} and (len(plans) > 1 or against_another(clause)):
        return ["What counts is how a plan compares with what runs now: state the step time of each in seconds."]
    words = plain(clause, LONGEST_WORDS)
    return [_checked(Evidence(claim=claim, plan=plan, value=value, words=words), study) for plan in plans]


def _checked(item: Evidence, study: Study) -> Evidence | str:
    assert item.plan is not None
    plan = read_plan(study, str(item.plan))
    broken = violations(plan, study.constraints)
    if broken:
        return f"{plan} cannot have run here: {'; '.join(v.sentence for v in broken)}. I have not recorded it."
    if plan == study.plan and item.claim is not Claim.STEP_TIME:
        return f"{plan} is the plan that the profile shows running; I have not recorded that it {item.claim.value}."
    if item.value is not None and item.value <= 0:
        return "A measurement is above zero; I have not recorded it."
    return item.model_copy(update={"plan": plan})
