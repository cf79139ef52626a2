"""A stage of ZeRO of which a result is told, as the plan that it is: "zero-2 oom'd" in a run under ZeRO-3."""

import re

from asap.study.study import Study

_STAGE_2 = re.compile(r"\bzero[- ]?2\b", re.I)
_TOLD = re.compile(r"\b(?:oom\w*|ran out|out of memory|crash\w*|died|fail\w*|took|takes|ran|measured|clocked)\b", re.I)
_ASKED = re.compile(r"\?|^\W*(?:(?:and|so|but)\W+)*(?:if|would|will|does|do|is|are|can|could|what|why|how)\b", re.I)


def with_stage_as_plan(text: str, study: Study) -> str:
    """The text with copies on all devices in place of ZeRO-2, where the run shards its parameters and no more."""
    plan = study.plan
    if plan is None or plan.degree("data") < plan.devices or not _TOLD.search(text) or _ASKED.search(text):
        return text
    return _STAGE_2.sub(f"replica={plan.devices}", text)
