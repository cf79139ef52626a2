"""Facts of the run itself in a clause: its global batch, its sequence length, the plan that runs now."""

import re

from asap.chat.understanding.quantities.local_batch import local_batches
from asap.chat.understanding.references.references import References
from asap.chat.understanding.statements.outcomes import outcome_in
from asap.core.numbers import LARGEST_COUNT, digits
from asap.core.text import plain
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact
from asap.plans import Plan
from asap.plans.prose import without_plans
from asap.plans.validity import violations
from asap.study.study import Study

LONGEST_WORDS = 300
"""Characters of a clause that are kept with a fact."""
_SHORTEST = 64
"""Tokens below which a length is a degree of context parallelism: "seq8 is for long context"."""
_NO_COUNT = f"A {{}} is a whole number from 1 to {LARGEST_COUNT:,}; I have not recorded it."

_FILLER = r"(?:now|actually|really|only|exactly|not \d+ ?(?:,|but))\s+"
_SETS = r"(?:is|was|has been|=|of|at|must|has to|have to|needs to|stays?|remains?|be|fixed|pinned|locked)"
_COUNT = rf"(?:[\s_]*size)?(?:\s+(?:we \w+ (?:with )?)?{_SETS})*\s*[=:]?\s*(?:{_FILLER})*"
_BATCH = re.compile(
    rf"(?<![a-z])(?<!micro[- _])(?:batch|gbs|lbs){_COUNT}(\d+)\b(?!\s*(?:k|m|million|tokens|ms|s\b|%|\.\d))"
    r"|\b(\d+)\s+(?:(?:sequences|seqs|samples) (?:per|a|each|in a) (?:step|(?:global )?batch)\b"
    r"|(?:(?:sequences|seqs|samples) )?(?:is|as) (?:our|the|its) (?:global )?batch)"
    r"|\b(?:train|run|fixed|pinned|stuck|step (?:has|is)|is|are)\w*\s+(?:(?:at|with|on|to)\s+)?"
    r"(\d+)\s+(?:sequences|seqs)(?=\W*$)",
    re.I,
)
_PER_DEVICE = re.compile(r"\bper[- _](?:device|chip|gpu|core|tpu)(?![a-z])", re.I)
_LOCAL = re.compile(r"\blocal[- _]batch|\blbs\b", re.I)
_MICRO_BATCH = re.compile(rf"\b(?:micro[- _]?batch|mbs)(?!es){_COUNT}(\d{{1,6}})\b(?!\s*(?:k|m|ms|s\b|%|\.\d))", re.I)
_BY_SEQUENCE = re.compile(
    r"\s*(?:sequences?\s*)?(?:[x×*]|of)\s*(\d{2,}|\d+(?=\s?k\b))\s*(k)?(?:\s*(?:tokens?|toks?))?\b(?!\s*(?:gpu|chip|tpu))",
    re.I,
)
"""Behind a batch, the length of its sequences: "batch is 64 x 4096"."""
_SEQUENCE = re.compile(
    rf"\b(?:sequences?|context|seq\w*|max_target_length)(?:[\s_]*(?:len\w*|window))?{_COUNT}(\d+)\s*(k)?\b(?!-way)"
    r"|\b(?:at|with) (?:an? )?(\d+)\s*(k)?(?:[- ]tokens?)? (?:context|seq(?:uence)?\b|(?<=k )seq(?:uence)?s\b)"
    r"|\b(?:sequences?|seqs?|samples|documents|docs)\s+(?:are|is|were|get)\s+(?:\w+\s+)?"
    r"(?:pack|pad|cut|truncat|chunk|concatenat)\w*\s+(?:in)?to\s+(\d+)\s*(k)?\b",
    re.I,
)
_OURS = re.compile(
    r"\b(?:we|we're|our|ours|my|i|the|it|its|this)\b"
    r"|^\W*(?:(?:no|nope|nah|oh|well|btw|actually|and|also|but|so|ok(?:ay)?|wait|hm+)\W+)*"
    r"(?:correction|update|fyi|note|global|per[- _]device|batch|gbs|seq\w*|context|max_target)",
    re.I,
)
_OF_RUN = re.compile(r"\b(?:we|we're|our|ours|my|i|the|it|its|this)\b|^\W*(?:correction|update|fyi|note)\b", re.I)
_SET = re.compile(r"\b(?:is|was|has been)\b|[=:]", re.I)
"""What makes a report of a count that begins with its name: "gbs=512", and not "gbs 512, same chips"."""
_RUNNING = re.compile(
    r"\b(?:we|i) (?:now |currently |actually |really )*(?:run|use|train with|are running|are on)\b"
    r"|\bour (?:current |actual )?(?:plan|mesh|sharding|baseline)\s+(?:now |actually |really )?is\b|\bwhat runs is\b",
    re.I,
)


def run_facts(
    clause: str, study: Study, refs: References, *, imagined: bool = False, reported: bool = False
) -> list[StatedFact | str]:
    """Facts of the run that a clause states; text in place of a fact says why it is not recorded.

    A microbatch that is only ``imagined`` is a question on a setting, and no other plan that runs. Where a figure is
    ``reported`` beside them, counts need no verb: "gbs 512, step 2.1 s".
    """
    rest, words = without_plans(clause), plain(clause, LONGEST_WORDS)
    found: list[StatedFact | str] = []
    if not _OURS.search(rest):
        return found
    told = reported or _OF_RUN.search(rest) or _SET.search(rest)
    if told and (batch := _BATCH.search(rest)) and not _denied(rest[: batch.start()]):
        found.append(_batch(digits(batch[1] or batch[2] or batch[3]), rest, study, words))
        if length := _BY_SEQUENCE.match(rest, batch.end()):
            return [*found, _sequence(digits(length[1]), bool(length[2]), words)]
    if told and not imagined and (size := _MICRO_BATCH.search(rest)) and not _denied(rest[: size.start()]):
        stated = next((each.value for each in found if isinstance(each, StatedFact) and each.value), None)
        found.append(_micro_batch(int(size[1]), round(stated) if stated else None, study, words))
    if told and (sequence := _SEQUENCE.search(rest)) and not _denied(rest[: sequence.start()]):
        found.append(_sequence(digits(sequence[1] or sequence[3] or sequence[5]), any(sequence.group(2, 4, 6)), words))
    if _RUNNING.search(rest) and outcome_in(rest) is None and not re.search(r"\d ?m?s\b|%", rest):
        whole = [study.complete(plan) for plan in refs.written[:1]]
        found += [_running(plan, study, words) for plan in whole]
    return found


def _denied(text: str) -> bool:
    return re.search(r"\b(?:not|never|no longer)\b|n't\b", text, re.I) is not None


def _running(plan: Plan, study: Study, words: str) -> StatedFact | str:
    broken = violations(plan, study.constraints)
    if broken:
        return f"{plan} cannot be what runs here: {'; '.join(v.sentence for v in broken)}. I have not recorded it."
    return StatedFact(claim=Claim.INCUMBENT, plan=plan, words=words)


def _sequence(length: int | None, thousands: bool, words: str) -> StatedFact | str:
    tokens = (length or 0) * (1024 if thousands else 1)
    if not 0 < tokens <= LARGEST_COUNT:
        return _NO_COUNT.format("sequence length")
    if tokens < _SHORTEST:
        return f"A sequence of {tokens} tokens? A degree of that axis is written cp={tokens}. Nothing is recorded."
    return StatedFact(claim=Claim.SEQUENCE, value=float(tokens), words=words)


def _micro_batch(size: int, stated: int | None, study: Study, words: str) -> StatedFact | str:
    """The plan that runs, with so many microbatches that each has the size; ``stated`` is a new global batch."""
    plan, batch = study.plan, stated or study.experiment.workload.global_batch
    if plan is None or batch is None:
        return "A microbatch says how many there are only where the plan and the global batch are on record."
    count, rest = divmod(batch, plan.batch_shards * size) if size else (0, 1)
    if rest or not count:
        return (
            f"Microbatches of {size} do not divide the global batch of {batch} over {plan.batch_shards} data ranks. I"
            " have not recorded it."
        )
    return _running(plan.model_copy(update={"microbatches": count}), study, words)


def _batch(count: int | None, clause: str, study: Study, words: str) -> StatedFact | str:
    devices, each = study.constraints.devices_per_slice, 1
    if _LOCAL.search(clause):
        if study.plan is None:
            return "A local batch says the global batch only where the plan is on record."
        each = local_batches(study, study.plan)
    elif _PER_DEVICE.search(clause):
        if devices is None:
            return "A batch per device says the global batch only where the number of devices is on record."
        each = devices * (study.constraints.slices or 1)
    sequences = (count or 0) * each
    if not 0 < sequences <= LARGEST_COUNT:
        return _NO_COUNT.format("global batch")
    return StatedFact(claim=Claim.BATCH, value=float(sequences), words=words)
