"""Which published sources may decide what, and which of their runs are published twice."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asap.calibration.dataset.rows import read_rows
from asap.calibration.dataset.runs import PublishedRun
from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.core.units import significant
from asap.plans.remat import Policy
from asap.prediction.step_model.recomputation import REMAT_LADDER, candidate_microbatches, infer_remat
from asap.prediction.uncertainty.step_interval import Doubts

KEPT_OUT = (
    "internevo", "mlperf_training", "ms_swift", "torchprime",
    "torchtitan", "gaudi2_performance", "aws_neuron_trn1", "megatron_golden",
    "megatron_bridge_cards", "torchao_float8", "megatron_bridge_guides", "kempner_forge",
    "axlearn", "fms_fsdp",
    "vectorlm", "scale_your_amd", "marin_grug", "yafsdp",
)  # fmt: skip
"""Sources that no fit, no choice of a variant and no interval may use: the last check before a release.

They were drawn before anything was fitted, the sources whose names have the smallest SHA-256: four of the ten of the
second collection, four of the twelve of the third, four of the eighteen of the fourth, four of the ten of the fifth.
Two more of the fourth, axlearn and fms_fsdp, are kept out because others may check predictions with them. All other
sources are fitted, and choices are made on each with the fit that left it out.
"""

UNFITTED = (
    "aws_moe_dispatchers", "gpu_recipes", "kempner_moe", "lambda_torchtitan", "litgpt_thunder", "megatron_moe_modelzoo",
    "modded_nanogpt", "nemo_longseq", "optimum_habana", "prime_rl", "torchtitan_gb200_blog", "torchtune",
)  # fmt: skip
"""Sources that say how far predictions of a new source lie off, and to which no constant is fitted.

Of the fourth collection all but AMD's two, whose vendor no other source has. Constants that were fitted to all twelve
predicted sources that were left out worse: in the median 11.0 % instead of 9.8 % for the collections before, 21.2 %
instead of 18.3 % for these. They are of many stacks, with few runs each. Of the fifth one whose routers are not
balanced, and one with an optimizer that is not modelled.
"""


def duplicates(runs: Sequence[PublishedRun]) -> list[tuple[str, str]]:
    """Runs of two sources that are one by content: shapes, machine, mesh, batch, and the same time to three digits."""
    alike: dict[tuple[object, ...], list[PublishedRun]] = defaultdict(list)
    for run in runs:
        if run.step_time is not None:
            shapes = run.architecture.model_dump_json(exclude={"name"})
            digits = significant(run.step_time)
            alike[shapes, run.chip, str(run.plan.ici), run.workload.global_batch, digits].append(run)
    pairs = ((first, other) for first, *others in alike.values() for other in others)
    return [(first.id, other.id) for first, other in pairs if first.source != other.source]


class Pairs(NamedTuple):
    """Indices of the measured runs, and of those that are predicted from them."""

    known: NDArray[np.int64]
    other: NDArray[np.int64]


def grouped(runs: Sequence[PublishedRun]) -> list[list[int]]:
    """Indices of the runs of each group, in order of appearance."""
    groups: dict[str, list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        groups[run.group].append(index)
    return list(groups.values())


def pairs_of(runs: Sequence[PublishedRun]) -> Pairs:
    """Every ordered pair inside a group, but not of a run that was measured twice."""
    found = [
        (one, other)
        for members in grouped(runs)
        for one in members
        for other in members
        if not _measured_twice(runs[one], runs[other])
    ]
    known, other = np.array(found, dtype=int).reshape(-1, 2).T
    return Pairs(known, other)


def _measured_twice(run: PublishedRun, other: PublishedRun) -> bool:
    mine = run.plan, run.architecture, run.workload, run.hardware
    return mine == (other.plan, other.architecture, other.workload, other.hardware)


def infer_missing_remat(runs: Sequence[PublishedRun]) -> list[PublishedRun]:
    """The runs with a rematerialisation policy and microbatches, inferred where they are not published.

    Runs of a group share their settings: all get the policy that most of them need; in a tie, the one that recomputes
    less.
    """
    chosen = [
        infer_remat(
            run.plan, run.architecture, run.workload, run.hardware, candidate_microbatches(run.plan, run.workload)
        )
        for run in runs
    ]
    votes: dict[str, Counter[Policy | None]] = defaultdict(Counter)
    for run, plan in zip(runs, chosen, strict=True):
        votes[run.group][plan.remat] += run.plan.remat is None
    found = []
    for run, plan in zip(runs, chosen, strict=True):
        policy = run.plan.remat or max(REMAT_LADDER, key=lambda candidate: votes[run.group][candidate])
        found.append(
            replace(run, plan=plan.model_copy(update={"remat": policy}), remat_inferred=run.plan.remat is None)
        )
    return found


Vector = NDArray[np.float64]
Kind = Literal["chip", "vendor", "framework", "precision"]


class FirstLook(BaseModel):
    """Of one run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(description="of the run")
    source: str
    predicted_s: float = Field(gt=0, description="the step time, predicted by the code and fit of that day")
    new: tuple[Kind, ...] = Field(description="what no source of that fit had")


def read_first_looks(path: Path) -> dict[str, FirstLook]:
    """First looks by run.

    Raises:
        ConfigError: the file cannot be read, or holds something else.
    """
    try:
        return {look.id: look for look in map(FirstLook.model_validate, read_rows(path))}
    except ValidationError as error:
        raise ConfigError(f"holds no first looks: {plain(error, 120)}", where=str(path)) from error


def as_first_seen(
    runs: Sequence[PublishedRun], residuals: Vector, doubts: Doubts, looks: Mapping[str, FirstLook]
) -> tuple[Vector, Doubts]:
    """Residuals and doubts with those of the first look in place of today's, where there was one.

    Args:
        runs: with a step time.
        residuals: ln(measured / predicted) of the same runs, today.
        doubts: of the same runs, today.
        looks: by run.
    """
    found, changed = residuals.copy(), {name: value.copy() for name, value in doubts.items()}
    for row, run in enumerate(runs):
        if (look := looks.get(run.id)) is not None and run.step_time is not None:
            found[row] = np.log(run.step_time / look.predicted_s)
            for kind in get_args(Kind):
                changed[kind][row] = float(kind in look.new)
    return found, changed
