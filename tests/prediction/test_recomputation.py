"""What recomputation costs where XLA compiles the step: it computes only what is read, and stacks what is kept."""

import numpy as np
import pytest

from asap.hardware.names import resolve_hardware
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction import predict
from asap.prediction.prediction import Prediction
from asap.study.study import study_of
from optimization.decoders import compiled
from optimization.decoders import decoder as decoder_of


def predicted(architecture: Architecture, workload: Workload, remat: str) -> Prediction:
    plan = Plan.parse(f"data=16 microbatches=4 remat={remat}")
    (found,) = predict([plan], architecture, workload, resolve_hardware("v5e-16").slice)
    return found


def seconds(found: Prediction, name: str) -> float:
    return next(part.busy_s for part in found.parts if part.name == name)


def on_xla(workload: Workload, **settings: object) -> Workload:
    return workload.model_copy(update={"framework": "MaxText", "zero_stage": None, **settings})


def test_a_loop_over_layers_copies_what_they_keep(decoder, workload):
    kept, again = (seconds(predicted(decoder, on_xla(workload), remat), "hbm") for remat in ("none", "full"))
    looped, unrolled = (
        seconds(predicted(decoder, on_xla(workload, scan_layers=scans), "none"), "hbm") for scans in (True, False)
    )
    assert kept == looped > 1.2 * unrolled
    assert kept > again > unrolled


def test_xla_does_not_compute_the_last_product_of_an_mlp_again(decoder, workload):
    shares = {
        name: seconds(predicted(decoder, work, "full"), "compute")
        / seconds(predicted(decoder, work, "none"), "compute")
        for name, work in (("xla", on_xla(workload)), ("torch", workload))
    }
    assert shares["torch"] == pytest.approx(4 / 3, abs=0.04)
    assert shares["xla"] == pytest.approx(1 + 0.76 / 3, abs=0.04)


@pytest.mark.parametrize("name", ["dense", "moe"])
def test_it_costs_about_what_compiled_programs_say(name: str):
    experiment, outcomes = decoder_of(name), compiled(name)
    study = study_of(experiment)
    assert study.slice is not None
    pairs = [
        (again, kept)
        for again, kept in ((each, each.replace("remat=full", "remat=none")) for each in outcomes)
        if again != kept and kept in outcomes and outcomes[kept].step_time_s and outcomes[again].step_time_s
    ]
    plans = [Plan.parse(text) for pair in pairs for text in pair]
    steps = [found.step_time for found in predict(plans, experiment.model, experiment.workload, study.slice)]
    modelled = np.array([step.value for step in steps if step]).reshape(-1, 2)
    timed = np.array([[outcomes[text].step_time_s for text in pair] for pair in pairs], dtype=float)
    ratio = np.median(modelled[:, 0] / modelled[:, 1]) / np.median(timed[:, 0] / timed[:, 1])
    assert len(pairs) > 20
    assert ratio == pytest.approx(1.0, abs=0.07)
