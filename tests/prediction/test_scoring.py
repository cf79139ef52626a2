import numpy as np
import pytest

from asap.hardware.names import resolve_hardware
from asap.plans import Plan, Remat
from asap.plans.enumeration import factorisations
from asap.prediction import predict, remat_codes, score_plans


def test_the_fast_pass_says_what_predictions_say(decoder, workload, h100):
    table = factorisations(64, ("replica", "data", "model", "stage"))
    codes = np.tile(remat_codes([Remat.FULL]), len(table))
    scores = score_plans(table, codes, decoder, workload, h100)
    axes = ("replica", "data", "seq", "model", "expert", "stage")
    for row in range(0, len(table), 7):
        text = " ".join(f"{axis}={degree}" for axis, degree in zip(axes, table[row], strict=True))
        found = predict(Plan.parse(f"{text} remat=full"), decoder, workload, h100)[0]
        assert found.step_time
        assert found.memory
        assert scores.step_time[row] == pytest.approx(found.step_time.value)
        assert scores.memory_bytes[row] == pytest.approx(found.memory.total.value)
        assert bool(scores.fits[row]) is found.memory.fits


def test_every_plan_of_512_devices_gets_a_finite_score(mixture, workload):
    hardware = resolve_hardware("v5p", "8x8x8").slice
    table = np.repeat(factorisations(512), len(Remat), axis=0)
    codes = np.tile(remat_codes(list(Remat)), len(table) // len(Remat))
    scores = score_plans(table, codes, mixture, workload, hardware)
    assert len(scores.step_time) == 2002 * len(Remat)
    assert np.isfinite(scores.step_time).all()
    assert (scores.step_time > 0).all()
    assert np.isfinite(scores.memory_bytes).all()


def test_chunks_do_not_show(decoder, workload, h100):
    table = np.tile(factorisations(64, ("replica", "model")), (2000, 1))
    codes = np.tile(remat_codes([Remat.FULL]), len(table))
    scores = score_plans(table, codes, decoder, workload, h100)
    first = scores.step_time[:7]
    assert (scores.step_time.reshape(-1, 7) == first).all()
