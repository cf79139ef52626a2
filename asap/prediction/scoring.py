"""The fast pass that ranks every plan: arrays of degrees in, seconds and bytes out, in chunks that fit the cache."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan, Remat
from asap.prediction.calibration import Calibration, load_calibration
from asap.prediction.case import Case
from asap.prediction.cases import REMATS, layout_arrays, machine_numbers, model_numbers, require, work_numbers
from asap.prediction.classes import Groups, allocator_class
from asap.prediction.memory import memory
from asap.prediction.step import step

CHUNK = 4096


@dataclass(frozen=True)
class Scores:
    """What ranks plans: seconds of a step, bytes of the fullest device, and whether they fit."""

    step_time: NDArray[np.float64]
    memory_bytes: NDArray[np.float64]
    fits: NDArray[np.bool_]


def remat_codes(policies: list[Remat]) -> NDArray[np.int64]:
    """The integer of each policy, as :func:`score_plans` takes them."""
    return np.array([REMATS.index(policy) for policy in policies], dtype=np.int64)


def score_plans(
    ici: NDArray[np.int64],
    remat: NDArray[np.int64],
    architecture: Architecture | None,
    workload: Workload,
    hardware: Slice,
    *,
    like: Plan | None = None,
    microbatches: NDArray[np.int64] | None = None,
    calibration: Calibration | None = None,
) -> Scores:
    """Score plans.

    Args:
        ici: degrees of shape (plans, 6), in the order of :data:`asap.plans.AXES`.
        remat: codes of shape (plans,) from :func:`remat_codes`.
        architecture: the decoder.
        workload: batch, sequence and numerics.
        hardware: chips and topology.
        like: lends its DCN mesh, virtual stages and offload.
        microbatches: of shape (plans,); 0 is unknown. By default those of ``like``.
        calibration: the bundled one by default.

    Raises:
        InsufficientEvidenceError: the architecture, the batch or the sequence is not known.
    """
    known = require(architecture, workload)
    template, fit = like or Plan(), (calibration or load_calibration()).full
    constants = fit.resolve_one(Groups.of(hardware, workload))
    fixed = model_numbers(known), work_numbers(workload, known), machine_numbers(hardware, workload)
    reserve = fit.reserve(allocator_class(workload.framework, hardware.chip.kind))
    counts = np.full(len(ici), template.microbatches or 0) if microbatches is None else microbatches
    seconds, held = np.empty(len(ici)), np.empty(len(ici))
    for start in range(0, len(ici), CHUNK):
        rows = slice(start, start + CHUNK)
        layout = layout_arrays(
            ici[rows], np.array([template.dcn.degrees]), remat[rows], counts[rows],
            np.array([template.pipeline_repeats]), np.array(["optimizer" in template.offload]),
            np.array(["activations" in template.offload]),
            workload.global_batch or 0,
        )  # fmt: skip
        case = Case(*fixed, layout)
        seconds[rows] = step(case, constants).total
        held[rows] = memory(case).reserved(reserve.scale, reserve.reuse).total
    return Scores(seconds, held, held <= fixed[2].hbm_bytes)
