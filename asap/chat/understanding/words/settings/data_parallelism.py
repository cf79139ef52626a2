""" "DP" with a degree in a run that is sharded and has no replicas: its own data parallelism, FSDP."""

import re

from asap.study.study import Study

_DEGREE = re.compile(r"(?<![\w=.-])dp[- ]?=?\s?(?P<degree>\d+)(?![\w.]*\d|\s*(?:x|%|times)\b)", re.I)
_BOTH_KINDS = re.compile(
    r"\b(?:h?fsdp|hsdp|ddp|data|replicas?|replicat\w+|plain|pure|zero(?:-?[123])?|shard\w*)(?![a-z])", re.I
)
"""Words beside which "DP" is plain data parallelism."""


def with_own_data_parallelism(text: str, study: Study) -> str:
    """The text with ``data=16`` for "dp16", where the run shards and no other kind of data parallelism is named."""
    return _DEGREE.sub(r"data=\g<degree>", text) if _means_own(text, study) else text


def data_parallelism_note(said: str, study: Study) -> str | None:
    """What "dp" was taken for; ``None`` where it was taken for plain data parallelism or is not named."""
    if not (_DEGREE.search(said) and _means_own(said, study)):
        return None
    return "dp is read as FSDP (data), the data parallelism of this run; plain data parallelism is replica"


def _means_own(text: str, study: Study) -> bool:
    sharded = study.plan is not None and study.plan.ici.data > 1 and study.plan.degree("replica") == 1
    return sharded and not _BOTH_KINDS.search(text)
