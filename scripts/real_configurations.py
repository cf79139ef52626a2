"""Configurations that MaxText and its recipes hold, as studies; and the same with another batch."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

from asap.core.errors import AsapError
from asap.experiments import Experiment
from asap.study.study import Study, study_of


def batch_settings(study: Study, times: int) -> Study:
    """The run with so many times the batch, not measured."""
    workload = study.experiment.workload
    changed = workload.model_copy(update={"global_batch": (workload.global_batch or 0) * times})
    experiment = study.experiment.model_copy(update={"workload": changed, "measured": None})
    return replace(study_of(experiment), preferences=study.preferences)


def studies(maxtext: Path, recipes: Path) -> Iterator[tuple[str, Study]]:
    """Every configuration with model, plan, batch and chips once, by name, from two checkouts."""
    reader = _recipes_script()
    definitions = reader._definitions(maxtext)
    seen: set[str] = set()
    for row in (*reader._own_runs(maxtext), *reader._benchmarks(definitions), *reader._recipes(recipes, definitions)):
        experiment: Experiment | None = row.experiment
        if experiment is None:
            continue
        key = repr((experiment.model, experiment.workload, experiment.hardware, experiment.plan))
        try:
            study = study_of(experiment)
        except AsapError:
            continue
        if key not in seen and _can_be_searched(study):
            seen.add(key)
            yield row.name, study


def _can_be_searched(study: Study) -> bool:
    model, plan = study.experiment.model, study.plan
    known = model is not None and not model.missing() and study.slice is not None
    return known and bool(study.experiment.workload.tokens) and plan is not None and plan.remat is not None


def _recipes_script() -> ModuleType:
    """``scripts/recipes``, which knows where configurations are."""
    loader = SourceFileLoader("recipes", str(Path(__file__).with_name("recipes")))
    spec = spec_from_loader("recipes", loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules["recipes"] = module
    loader.exec_module(module)
    return module
