"""What a launcher's own word "selective" recomputes: torchtitan's is of operations or of every nth layer."""

import re
from typing import Literal

from asap.plans.launchers import stack_of
from asap.plans.remat import Policy, Remat
from asap.plans.torchtitan.settings import REMAT, REMAT_OPTION, remat_of
from asap.study.study import Study

Wanted = Policy | Literal["any"] | None
"""A policy, any one, or none that is spoken of."""
_OPERATIONS = re.compile(r"\bops?\b|\boperations?\b|\bop-level\b", re.I)
_EVERY = re.compile(
    r"\bevery (?P<word>other|second|third|fourth)\b|\bevery (?P<count>[1-9])|\boption\W+(?P<option>[1-9])", re.I
)
_WORDS = {"other": "2", "second": "2", "third": "3", "fourth": "4"}


def as_launcher_means(policy: Wanted, text: str, study: Study) -> Wanted:
    """The policy that is wanted; in place of Megatron's selective recomputation what the run's launcher calls so."""
    return _meant(text, study) if policy is Remat.SELECTIVE and _is_torchtitan(study) else policy


def selective_note(text: str, policy: Wanted, study: Study) -> str | None:
    """What "selective" was read as, where a launcher has two kinds of it; ``None`` if it is not spoken of."""
    if not _is_torchtitan(study) or policy is None or not re.search(r"\bselective\b", text, re.I):
        return None
    other, kind = ("2", "every second layer") if policy is Remat.MINIMAL else ("op", "operations")
    also = remat_of({REMAT: "selective", REMAT_OPTION: other})
    return (
        f"torchtitan's mode selective is read as remat={policy}; with selective_ac_option {other}, of {kind}, it"
        f" is remat={also}"
    )


def _is_torchtitan(study: Study) -> bool:
    return stack_of(study.experiment.workload.framework) == "torchtitan"


def _meant(text: str, study: Study) -> Policy | None:
    """The kind that is named, else the one that the configuration has, else torchtitan's default."""
    option = study.experiment.hyperparameters.get(REMAT_OPTION)
    if _OPERATIONS.search(text):
        option = "op"
    elif found := _EVERY.search(text):
        option = _WORDS.get((found["word"] or "").lower()) or found["count"] or found["option"]
    return remat_of({REMAT: "selective", **({REMAT_OPTION: option} if option else {})})
