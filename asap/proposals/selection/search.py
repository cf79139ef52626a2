"""The search over every configuration of a run."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from asap.hardware import Slice
from asap.hardware.nodes import chips_per_node
from asap.levers.lever import Run
from asap.levers.table import LEVERS
from asap.models import Architecture
from asap.plans import Plan
from asap.plans.enumeration import Table, factorisations, valid
from asap.plans.validity import Constraints
from asap.prediction.configuration_grid import ConfigurationGrid, first_rows
from asap.prediction.evaluate_grid import evaluate_grid
from asap.prediction.memory_outcomes import memory_belief
from asap.prediction.predict_study import anchoring_step, usual_axes
from asap.prediction.step_model.groups import allocator_class
from asap.prediction.uncertainty.calibration import load_calibration
from asap.proposals.selection.search_result import SearchResult
from asap.proposals.selection.strategy import MESH
from asap.stacks.launchers import stack_of
from asap.study.start import is_start
from asap.study.study import Study

PrecedentGains = Callable[[Table], NDArray[np.float64]]


def search(study: Study, precedents: PrecedentGains) -> SearchResult | None:
    """Evaluate every configuration of a run; ``None`` where its plan, rematerialisation or architecture is not known.

    Args:
        study: the run.
        precedents: gain that precedents add to meshes of shape (meshes, 6), in ``ln(step time)``.
    """
    plan, model, hardware, workload = study.plan, study.experiment.model, study.slice, study.experiment.workload
    if plan is None or plan.remat is None or hardware is None or not workload.tokens or workload.global_batch is None:
        return None
    if model is None or model.missing() or study.constraints.devices_per_slice is None:
        return None
    grid = _grid(study, plan, model, workload.global_batch)
    fit, measured = load_calibration().full, anchoring_step(study)
    evaluation = evaluate_grid(grid, model, workload, hardware, study.constraints, fit, measured, memory_belief(study))
    fits_now, nothing_runs = bool(evaluation.fits[evaluation.present]), is_start(study.experiment)
    return SearchResult(evaluation, precedents(grid.meshes), fits_now, nothing_runs)


def best_plans(study: Study, count: int) -> list[Plan]:
    """The fastest configuration that fits of each mesh, fastest mesh first; none where nothing can be searched."""
    found = search(study, lambda meshes: np.zeros(len(meshes)))
    if found is None or not len(found.possible):
        return []
    places = found.possible
    places = places[np.argsort(-found.evaluation.gain[tuple(places.T)], kind="stable")]
    _, rows = np.unique(places[:, MESH], return_index=True)
    return [found.plan(place) for place in places[np.sort(rows)][:count]]


def run_of(study: Study) -> Run:
    """What the values of levers depend on."""
    workload, hardware = study.experiment.workload, study.slice
    kind = hardware.chip.kind if hardware else "tpu"
    xla = allocator_class(workload.framework, kind) in ("tpu", "xla")
    return Run(
        plan=study.plan or Plan(), workload=workload, stack=stack_of(workload.framework), xla=xla,
        model=study.experiment.model, chip=hardware.chip.name if hardware else "", node=_node(hardware),
        settings=study.experiment.hyperparameters,
    )  # fmt: skip


def _node(hardware: Slice | None) -> int | None:
    """Devices of a node, which the fast links of a GPU join; ``None`` of a slice of TPUs."""
    return chips_per_node(hardware.chip) if hardware else None


def _grid(study: Study, plan: Plan, model: Architecture, batch: int) -> ConfigurationGrid:
    tried = ((lever, lever.tried(run_of(study), study.preferences.allowed)) for lever in LEVERS)
    return ConfigurationGrid(
        plan, _table(study, plan, study.constraints), tuple(t for t in tried if len(t[1]) > 1), batch
    )


def _table(study: Study, plan: Plan, constraints: Constraints) -> NDArray[np.int64]:
    """Meshes that some number of microbatches may make valid, the present one first."""
    devices = constraints.devices_per_slice
    assert devices is not None
    table = factorisations(devices, usual_axes(study))
    whole = plan.model_copy(update={"microbatches": 1, "pipeline_repeats": 1})
    return first_rows(table[valid(table, constraints, whole)], plan.ici.degrees)
