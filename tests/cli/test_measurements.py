"""Measurements are checked before they are believed."""

import json

import pytest

from asap.core.errors import ConfigError
from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.experiments.observed import MeasuredStep
from asap.profiles import Kpis, Operation, Profile
from asap.study.study import study_of

CONFIG = "model_name: llama3.1-8b\nper_device_batch_size: 2\nmax_target_length: 8192\nremat_policy: full\n"
GIB = 2**30


@pytest.fixture
def run(tmp_path) -> Experiment:
    path = tmp_path / "train.yml"
    path.write_text(CONFIG)
    empty = Experiment(id="x", hardware=refer_to_hardware("v6e-16")[0])
    return read_configuration(path, [], empty)


def profile(**facts: object) -> Profile:
    kpis = Kpis(step_time_s=facts.pop("step_time_s", 2.3), steps=facts.pop("steps", 5))
    return Profile.model_validate({"source": "a profile", "device_type": "TPU v6e", "kpis": kpis, **facts})


def operation(name: str, **facts: object) -> Operation:
    return Operation.model_validate({"name": name, "category": "fusion", "fraction": 0.5, **facts})


@pytest.mark.parametrize(("facts", "said"), [
    ({"device_type": "TPU v5 lite"}, "is of TPU v5e, and the record says TPU v6e"),
    ({"devices": 64}, "shows 64 devices, and the record has 16"),
    ({"peak_hbm_bytes": 39.5 * GIB}, "HBM use of 39.5 GiB; a device of TPU v6e .* has 32.0 GiB"),
    ({"hbm_capacity_bytes": 95 * GIB}, "HBM capacity of 95.0 GiB"),
    ({"step_time_s": 0.5}, "would be an MFU of 1.. % for this model and batch"),
    ({"step_time_s": 0.0}, "steps that take no time"),
])  # fmt: skip
def test_what_cannot_be_of_this_run_is_refused(run, facts, said):
    with pytest.raises(ConfigError, match=said):
        study_of(run, profile(**facts))


@pytest.mark.parametrize(("facts", "said"), [
    ({"steps": 0}, "holds no whole step"), ({"hbm_capacity_bytes": 14 * GIB}, "may be of another chip"),
    ({"operations": (operation("dot"),)}, "shows no collectives, and the plan has 16 devices"),
    ({"operations": (operation("dot", flops=1e12),)}, "may be of another model, batch or plan"),
    ({"operations": (operation("dot", flops=1e17),)}, "may be of another model, batch or plan"),
])  # fmt: skip
def test_what_is_doubtful_is_said_first(run, facts, said):
    assert said in " ".join(study_of(run, profile(**facts)).warnings[:2])


def test_what_agrees_is_believed(run):
    needed = operation("dot", flops=1.1e15)
    reduced = operation("all-reduce", collective="all-reduce")
    believed = profile(devices=4, operations=(needed, reduced), peak_hbm_bytes=30 * GIB, hbm_capacity_bytes=32 * GIB)
    assert study_of(run, believed).warnings == study_of(run).warnings


def test_a_profile_that_names_a_generation_is_of_any_chip_of_it():
    run = Experiment(id="x", hardware=refer_to_hardware("h200-8")[0])
    assert study_of(run, profile(device_type="Nvidia GPU (Hopper)")).chip.name == "h200"
    with pytest.raises(ConfigError, match="the record says NVIDIA H200"):
        study_of(run, profile(device_type="Nvidia GPU (Ampere)"))


def test_tokens_of_a_log_that_are_not_the_batch(run):
    fitting = MeasuredStep(seconds=2.3, tokens_per_device=16384, source="run.log")
    assert not [w for w in study_of(run.model_copy(update={"measured": fitting})).warnings if "tokens" in w]
    other = MeasuredStep(seconds=2.3, tokens_per_device=8192, source="run.log")
    warnings = study_of(run.model_copy(update={"measured": other})).warnings
    assert "8,192 tokens per device and step; the record's batch makes 16,384" in warnings[0]


def test_a_stated_step_anchors_the_prediction(asap, tmp_path):
    path = tmp_path / "train.yml"
    path.write_text(CONFIG)
    base = ("predict", "--config", str(path), "--hardware", "v6e-16", "--plan", "data=16", "--format", "json")
    anchored = json.loads(asap(*base, "--step-time", "2.31s").out)["predictions"][0]
    assert anchored["step_time"]["value"] == pytest.approx(2.31)
    assert anchored["method"] == "anchored_architecture"
    assert json.loads(asap(*base).out)["predictions"][0]["method"] == "architecture"
    assert asap(*base, "--step-time", "soon").code == 2
    assert asap(*base, "--step-time", "0.1s").code == 4


def test_a_log_is_kept_with_the_record(asap, tmp_path):
    path, log = tmp_path / "train.yml", tmp_path / "run.log"
    path.write_text(CONFIG)
    log.write_text("".join(f"completed step: {n}, seconds: {s}, x\n" for n, s in enumerate((40.0, 2.3, 2.4, 2.35))))
    arguments = ("--config", str(path), "--hardware", "v6e-16", "--step-time", str(log))
    added = asap("experiments", "add", "mine", *arguments)
    assert "2.35 s, the median of 3 steady steps (2.30 s to 2.40 s; 1 of the warm-up left out)" in added.out
    record = json.loads(asap("experiments", "show", "mine", "--format", "json").out)
    assert record["measured"]["steps"] == 3
    predicted = json.loads(asap("predict", "mine", "--plan", "data=16", "--format", "json").out)
    assert predicted["predictions"][0]["step_time"]["value"] == pytest.approx(2.35)
