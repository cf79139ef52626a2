"""The plan that is spoken of, with less rematerialisation."""

import re

from asap.chat.conversation import Conversation
from asap.plans import Remat
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction

_LESS_RECOMPUTATION = re.compile(r"\bless (?:remat\w*|recomput\w*|checkpointing)", re.IGNORECASE)
_LADDER = (Remat.NONE, Remat.MINIMAL, Remat.SAVE_DOT_EXCEPT_MLP, Remat.SAVE_QKV_PROJ, Remat.FULL)
"""Policies from the least recomputation to the most."""


def less_recomputation(conversation: Conversation, text: str) -> Prediction | None:
    """Where a line says "less rematerialisation": the fastest that fits of the plan that was spoken of last,
    or runs now, under policies that recompute less; ``None`` where it says nothing of the kind, or nothing fits.
    """
    plan = conversation.focus or conversation.study.plan
    if _LESS_RECOMPUTATION.search(text) is None or plan is None:
        return None
    lighter = _LADDER[: _LADDER.index(plan.remat)] if plan.remat in _LADDER else _LADDER[:-1]
    plans = [plan.model_copy(update={"remat": policy}) for policy in lighter]
    fitting = [
        each for each in expect(conversation.study, plans) if each.step_time and each.memory and each.memory.fits
    ]
    return min(fitting, key=lambda each: each.step_time.value if each.step_time else 0.0, default=None)
