import importlib.util
import os
from pathlib import Path

import pytest

from asap.compiler.programs.request import make_request
from asap.compiler.toolchain.compile import compile_all
from asap.core.errors import ConfigError
from asap.hardware import resolve_hardware
from asap.models import Workload
from asap.plans import Plan

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.compiles,
    pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed"),
]


def request_for(step, hardware):
    slice_ = resolve_hardware(hardware).slice
    name = f"steps_of_a_user:{step}"
    return make_request(slice_, Plan.parse("data=2 model=2"), None, Workload(), train_step=name, path=(str(HERE),))


def test_a_worker_that_dies_loses_nothing(home, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(HERE.parent.parent), os.environ.get("PYTHONPATH", ""))))
    monkeypatch.setenv("ASAP_TEST_MARKERS", str(tmp_path))
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    requests = [request_for("kills_its_worker_once", "v5e-4"), *(request_for("matmul", h) for h in ("v5e-4", "v6e-4"))]
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    try:
        outcomes = compile_all(requests, engine="ray://local")
    finally:
        ray.shutdown()
    assert (tmp_path / "killed").exists()
    assert [outcome.status for outcome in outcomes] == ["compiled"] * 3
    assert all("is_scheduled=true" in outcome.program for outcome in outcomes)


def test_without_ray_the_engine_says_how_to_install_it(home):
    if importlib.util.find_spec("ray") is not None:
        pytest.skip("ray is installed")
    with pytest.raises(ConfigError, match="ray"):
        compile_all([request_for("matmul", "v5e-4")], engine="ray://somewhere:10001")
