"""How many sequences a microbatch may have: "mbs 2 is max", "keep mbs at 1"."""

import re

from asap.chat.understanding.statements.limits.bounds import sense_of
from asap.evidence.claims import Claim
from asap.evidence.fact import MICRO_BATCH, StatedFact
from asap.study.study import Study

_SIZE = re.compile(
    r"\b(?:mbs|micro[- _]?batch(?:[- _]?size)?)(?!es)\b(?:\s+(?:\w+\s+){0,4}?"
    r"|\s*[<>=≤≥:]+\s*)(?P<size>\d{1,4})\b(?!\s*[%x])",
    re.I,
)
_MOST = re.compile(r"<=|≤")
_STAYS = re.compile(r"\b(?:keep|stays?|must (?:be|stay)|fixed|has to (?:be|stay)|stuck|locked)\b", re.I)


def micro_batch_limit_in(clause: str, study: Study) -> StatedFact | None:
    """The limit that a clause sets; ``None`` if it sets none, or the global batch is not on record.

    A microbatch has the global batch over the shards of the batch and the microbatches of a step.
    """
    found, batch = _SIZE.search(clause), study.experiment.workload.global_batch
    size = int(found["size"]) if found else 0
    if not size or batch is None:
        return None
    sense = "most" if _MOST.search(clause) else sense_of(clause)
    if sense is None and not _STAYS.search(clause):
        return None
    return StatedFact(
        claim=Claim.CONSTRAINT, about=MICRO_BATCH, value=batch / size, stated=size, bound=sense, words=clause
    )
