"""What a run does not say widens its interval, and the report names it."""

import numpy as np
import pytest

from asap.hardware.names import resolve_hardware
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.from_architecture import Measured, predict
from asap.prediction.uncertainty.unstated import alternatives, mixture_of

MODEL = Architecture(layers=32, d_model=4096, d_ff=14336, heads=32, kv_heads=8, head_dim=128, vocab=32000)
H100 = resolve_hardware("h100-8").slice
SILENT = Workload(global_batch=64, sequence_length=4096, framework="torchtitan", attention="flash")


def width(plan: str, workload: Workload = SILENT) -> float:
    (found,) = predict(Plan.parse(plan), MODEL, workload, H100)
    assert found.step_time.high
    assert found.step_time.low
    return float(np.log(found.step_time.high / found.step_time.low))


def test_an_unstated_policy_widens_the_interval():
    assert width("data=8 microbatches=8") > 1.05 * width("data=8 microbatches=8 remat=none")


def test_the_report_says_which_unknown_widens_it_most_and_how_to_tell():
    (found,) = predict(Plan.parse("data=8 microbatches=8"), MODEL, SILENT, H100)
    (note,) = [note for note in found.notes if note.startswith("Not stated")]
    assert "recomputation" in note
    assert "remat=" in note


def test_a_measured_step_says_it_all():
    plan = Plan.parse("data=8 microbatches=8")
    (found,) = predict(plan, MODEL, SILENT, H100, baseline=Measured(plan, 3.0))
    assert not any(note.startswith("Not stated") for note in found.notes)


def test_an_unstated_kernel_counts_where_it_is_an_option():
    old = SILENT.model_copy(update={"framework": "Megatron-LM", "attention": None, "zero_stage": 1})
    told = old.model_copy(update={"attention": "flash"})
    assert width("replica=8 microbatches=8 remat=none", old) > width("replica=8 microbatches=8 remat=none", told)


def test_an_unknown_way_of_context_parallelism_counts_where_a_sequence_is_shared():
    def settings(plan, **said):
        work = SILENT.model_copy(update={"framework": "JAX"} | said)
        return [one.setting for one in alternatives([Plan.parse(plan)], [False], work, H100)]

    assert settings("seq=8").count("context parallelism") == 2
    assert "context parallelism" not in settings("data=8")
    assert "context parallelism" not in settings("seq=8", context_parallel="ulysses")
    assert "context parallelism" not in settings("seq=8", framework="torchtitan")


def test_a_mixture_has_the_mean_and_the_spread_of_its_readings():
    base = np.zeros(2)
    found = mixture_of(base, [("a", 0.5, base + 0.2), ("b", 0.25, base + 0.4)])
    assert found.shift == pytest.approx([0.2, 0.2])
    assert found.spreads["a"] == pytest.approx([0.1, 0.1])
    assert found.spread == pytest.approx(np.hypot(found.spreads["a"], found.spreads["b"]))
