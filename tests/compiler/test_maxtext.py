import importlib.util
import sys
from pathlib import Path

import pytest

from asap.compiler.verify import maxtext_settings, verify
from asap.core.errors import BadInputError, ConfigError, InsufficientEvidenceError
from asap.core.text import REDACTED
from asap.experiments import Experiment, HardwareReference
from asap.models import Workload
from asap.plans import Plan

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
    (found,) = verify(experiment(width=512), [plan], maxtext=True, python=shaped)
    assert found.fits is True
    assert found.program == "MaxText's step of tiny"
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
    (found,) = verify(record, [Plan.parse("data=4 model=2")], maxtext=True, python=shaped)
    assert found.fits is True


@needs_libtpu
@needs_no_maxtext
def test_an_architecture_of_ones_own_goes_as_arguments(shaped):
    (found,) = verify(
        experiment(width=512, override_model_config=True), [Plan.parse("data=4")], maxtext=True, python=shaped
    )
    assert found.memory.arguments == 512 * 512 // 4 * 2 + 512 * 512 * 2


@needs_libtpu
@needs_no_maxtext
def test_what_maxtext_raises_is_told(shaped):
    (found,) = verify(experiment(model_name="broken"), [Plan.parse("data=4")], maxtext=True, python=shaped)
    assert found.status == "step_failed"
    assert "train_compile.py:19: ValueError: no such model" in found.verdict


@needs_no_maxtext
def test_where_maxtext_is_missing_one_line_says_so(home):
    plans = [Plan.parse("data=4")]
    with pytest.raises(ConfigError, match=r"MaxText is not installed \(.*--python"):
        verify(experiment(), plans, maxtext=True)
    with pytest.raises(ConfigError, match="MaxText is not installed"):
        verify(experiment(), plans, maxtext=True, python=sys.executable)
    with pytest.raises(ConfigError, match=r"--python .*nowhere: cannot be run"):
        verify(experiment(), plans, maxtext=True, python="/nowhere")


def test_settings_on_record_carry_the_plan_and_no_secret():
    settings = maxtext_settings(
        experiment(hf_access_token=REDACTED, base_config="base.yml", ici_tensor_parallelism=4),
        Plan.parse("data=4 remat=minimal"),
    )
    assert settings["ici_fsdp_parallelism"] == 4
    assert settings["ici_tensor_parallelism"] == 1
    assert settings["remat_policy"] == "minimal"
    assert not {"hf_access_token", "base_config"} & settings.keys()


def test_an_experiment_without_settings_of_maxtext_is_refused():
    bare = experiment().model_copy(update={"workload": Workload()})
    with pytest.raises(InsufficientEvidenceError, match="no settings of MaxText"):
        verify(bare, [Plan.parse("data=4")], maxtext=True)
    on_gpus = experiment().model_copy(update={"hardware": HardwareReference(name="h100-8", chip="h100", devices=8)})
    with pytest.raises(BadInputError, match="TPUs alone"):
        verify(on_gpus, [Plan.parse("data=8")], maxtext=True)
