import importlib.util
import os
import sys
from pathlib import Path

import pytest

from asap.compiler.programs.options import CompileOptions, maxtext_settings
from asap.compiler.verify import verify
from asap.core.errors import BadInputError, ConfigError, InsufficientEvidenceError
from asap.core.text import REDACTED
from asap.experiments import Experiment, HardwareReference
from asap.models import Workload, find_architecture
from asap.plans import Plan

pytestmark = pytest.mark.compiles

SHAPED = Path(__file__).parent / "maxtext_shaped"
HERE = HardwareReference(name="v5e-4", chip="v5e", topology=(2, 2), devices=4)
needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
needs_no_maxtext = pytest.mark.skipif(importlib.util.find_spec("maxtext") is not None, reason="MaxText is installed")


def experiment(**settings):
    return Experiment(
        id="mine", workload=Workload(framework="MaxText"), hardware=HERE,
        hyperparameters={"model_name": "tiny", "ici_fsdp_parallelism": -1, **settings},
    )  # fmt: skip


@pytest.fixture
def shaped(home, monkeypatch):
    """A Python that has a package with the shape of MaxText."""
    monkeypatch.setenv("PYTHONPATH", str(SHAPED))
    return sys.executable


@needs_libtpu
@needs_no_maxtext
def test_maxtexts_own_step_is_compiled_under_the_plan(shaped):
    plan = Plan.parse("data=2 model=2")
    (found,) = verify(experiment(width=512), [plan], CompileOptions(maxtext=True, python=shaped))
    assert (found.fits, found.program) == (True, "MaxText's step of tiny")
    assert found.memory.arguments == 2 * 512 * 512 // 2 * 2
    assert {row.axes for row in found.collectives} <= {"data", "model"}
    assert found.collectives
    assert {"maxtext", "maxtext_source"} <= found.versions.keys()


@needs_libtpu
@needs_no_maxtext
def test_a_slice_that_maxtext_has_no_name_for_goes_by_that_of_libtpu(shaped):
    record = experiment().model_copy(
        update={"hardware": HardwareReference(name="v5e-8", chip="v5e", topology=(2, 4), devices=8)}
    )
    (found,) = verify(record, [Plan.parse("data=4 model=2")], CompileOptions(maxtext=True, python=shaped))
    assert found.fits is True


@needs_libtpu
@needs_no_maxtext
def test_an_architecture_of_ones_own_goes_as_arguments(shaped):
    record = experiment(width=512, override_model_config=True)
    (found,) = verify(record, [Plan.parse("data=4")], CompileOptions(maxtext=True, python=shaped))
    assert found.memory.arguments == 512 * 512 // 4 * 2 + 512 * 512 * 2


@needs_libtpu
@needs_no_maxtext
def test_what_maxtext_raises_is_told(shaped):
    (found,) = verify(
        experiment(model_name="broken"), [Plan.parse("data=4")], CompileOptions(maxtext=True, python=shaped)
    )
    assert found.status == "step_failed"
    assert "train_compile.py:19: ValueError: no such model" in found.verdict


@pytest.mark.skipif("ASAP_MAXTEXT_PYTHON" not in os.environ, reason="ASAP_MAXTEXT_PYTHON names no Python with MaxText")
def test_maxtext_itself_is_compiled_like_the_reference_step(home):
    settings = {
        "model_name": "llama2-7b", "per_device_batch_size": 2, "max_target_length": 2048, "attention": "flash",
        "dataset_type": "synthetic", "enable_checkpointing": False,
    }  # fmt: skip
    record = Experiment(
        id="seven", model=find_architecture("llama2-7b"), hyperparameters=settings,
        hardware=HardwareReference(name="v5e-16", chip="v5e", topology=(4, 4), devices=16),
        workload=Workload(framework="MaxText", global_batch=32, sequence_length=2048),
    )  # fmt: skip
    plans = [Plan.parse("data=16 remat=full")]
    python = os.environ["ASAP_MAXTEXT_PYTHON"]
    (theirs,) = verify(record, plans, CompileOptions(maxtext=True, python=python))
    (ours,) = verify(record, plans)
    assert theirs.program == "MaxText's step of llama2-7b"
    assert theirs.memory.arguments == pytest.approx(ours.memory.arguments, rel=0.01)
    assert theirs.memory.peak == pytest.approx(ours.memory.peak, rel=0.05)
    assert theirs.step_time.value == pytest.approx(ours.step_time.value, rel=0.05)
    sizes = [sum(row.size_bytes for row in found.collectives) for found in (theirs, ours)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)


@needs_no_maxtext
def test_where_maxtext_is_missing_one_line_says_so(home):
    plans = [Plan.parse("data=4")]
    with pytest.raises(ConfigError, match=r"MaxText is not installed \(.*--python"):
        verify(experiment(), plans, CompileOptions(maxtext=True))
    with pytest.raises(ConfigError, match="MaxText is not installed"):
        verify(experiment(), plans, CompileOptions(maxtext=True, python=sys.executable))
    with pytest.raises(ConfigError, match=r"--python .*nowhere: cannot be run"):
        verify(experiment(), plans, CompileOptions(maxtext=True, python="/nowhere"))


def test_settings_on_record_carry_the_plan_and_no_secret():
    settings = maxtext_settings(
        experiment(hf_access_token=REDACTED, base_config="base.yml", ici_tensor_parallelism=4),
        Plan.parse("data=4 remat=minimal"),
    )
    assert (settings["ici_fsdp_parallelism"], settings["ici_tensor_parallelism"]) == (-1, 1)
    assert settings["remat_policy"] == "minimal"
    assert not {"hf_access_token", "base_config"} & settings.keys()


def test_an_experiment_without_settings_of_maxtext_is_refused():
    bare = experiment().model_copy(update={"workload": Workload()})
    with pytest.raises(InsufficientEvidenceError, match="no MaxText settings"):
        verify(bare, [Plan.parse("data=4")], CompileOptions(maxtext=True))
    on_gpus = experiment().model_copy(update={"hardware": HardwareReference(name="h100-8", chip="h100", devices=8)})
    with pytest.raises(BadInputError, match="TPUs only"):
        verify(on_gpus, [Plan.parse("data=8")], CompileOptions(maxtext=True))
