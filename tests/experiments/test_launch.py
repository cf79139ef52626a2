import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import AsapError, ConfigError
from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.experiments.maxtext_script import read_launch
from tests.cases import cases, kept, listed

KEPT = kept(__file__)
RECIPE = KEPT["RECIPE"]


@cases("script, said")
def test_a_script_is_read_as_what_it_starts(script, said):
    launch = read_launch(script)
    assert {key: listed(getattr(launch, key)) for key in said} == said


@cases("command")
def test_the_ways_of_starting_maxtext(command):
    launch = read_launch(command)
    assert (launch.config, launch.overrides) == ("MaxText/configs/base.yml", ("ici_fsdp_parallelism=8",))


@given(st.text(alphabet="maxtext.train=\"'\\\n $({})-:;&|ab#`", max_size=200))
def test_no_script_is_too_odd(script):
    launch = read_launch(f"python -m MaxText.train {script}")
    assert launch is None or all("$" not in override for override in launch.overrides)


def test_a_line_without_end_is_no_command():
    assert read_launch("maxtext/" * 100_000 + " a=b") is None


def test_a_variable_is_not_blown_up():
    value = "x" * 10_000
    launch = read_launch(f"A={value}\npython3 -m MaxText.train a.yml run_name={'$A' * 1_000} steps=5")
    assert (launch.overrides, launch.unknown) == (("steps=5",), ("run_name",))


@pytest.mark.parametrize("script", ["", "echo train.py a=b", "python train.py a.yml a=1", "'unclosed MaxText", "\\"])
def test_other_scripts_have_none(script):
    assert read_launch(script) is None


def add(path, *overrides: str) -> Experiment:
    return read_configuration(path, overrides, Experiment(id="x"))


def test_a_script_becomes_an_experiment(tmp_path):
    (tmp_path / "run.sh").write_text(RECIPE)
    experiment = add(tmp_path / "run.sh", "per_device_batch_size=4")
    assert (experiment.hardware.chip, experiment.hardware.slices, experiment.hardware.devices) == ("v5p", 2, 64)
    assert str(experiment.plan) == "data=32 dcn.replica=2 microbatches=1 remat=full"
    assert experiment.workload.global_batch == 4 * 64
    assert "65536" in experiment.environment["LIBTPU_INIT_ARGS"]
    assert experiment.provenance["model"] == "run.sh:12: model_name, in MaxText's file of it"
    assert experiment.provenance["workload.precision"] == "default of MaxText: dtype"
    assert experiment.provenance["workload.global_batch"].startswith(
        "by the plan and override: per_device_batch_size x"
    )
    assert not any("run_name" in note for note in experiment.notes)


@pytest.mark.parametrize("program", ["maxtext.trainers.post_train.rl.train_rl", "MaxText.decode"])
def test_a_script_that_starts_no_training_is_refused_by_what_it_does(tmp_path, program):
    path = tmp_path / "run.sh"
    path.write_text(f'xpk workload create --command="python3 -m {program} base.yml model_name=llama3.1-8b"')
    with pytest.raises(ConfigError, match="a program of MaxText that serves, or trains otherwise"):
        read_configuration(path, (), Experiment(id="x"))


def test_the_last_of_a_repeated_setting_counts_as_for_maxtext(tmp_path):
    script = "python3 MaxText/train.py base.yml model_name=llama2-7b per_device_batch_size={} per_device_batch_size={}"
    (tmp_path / "run.sh").write_text(script.format(1, 2))
    known = Experiment(id="x", hardware=refer_to_hardware("v5e-16")[0])
    assert read_configuration(tmp_path / "run.sh", [], known).workload.global_batch == 32
    (tmp_path / "run.sh").write_text(script.format(1, "$BATCH"))
    with pytest.raises(ConfigError, match="sets per_device_batch_size by a variable"):
        read_configuration(tmp_path / "run.sh", [], known)


def test_a_script_that_calls_another_names_it(tmp_path):
    (tmp_path / "base.sh").write_text("python3 -m MaxText.train base.yml model_name=llama2-7b\n")
    (tmp_path / "big.sh").write_text("chmod +x base.sh\n./somewhere/base.sh 16\n")
    with pytest.raises(ConfigError, match=r"give base\.sh, which it hands over to"):
        add(tmp_path / "big.sh")


@cases("name, text, said")
def test_what_is_not_read_is_refused_by_its_name(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=said):
        add(tmp_path / name)


MANIFEST = KEPT["MANIFEST"]


def test_a_manifest_says_command_chip_topology_and_slices(tmp_path):
    (tmp_path / "k8s.yaml").write_text(MANIFEST)
    experiment = add(tmp_path / "k8s.yaml")
    assert (experiment.hardware.chip, experiment.hardware.topology, experiment.hardware.slices) == ("v6e", (4, 4), 2)
    assert (experiment.plan.ici.data, experiment.plan.dcn.replica) == (16, 2)
    assert experiment.environment == {"LIBTPU_INIT_ARGS": "--a=1"}
    for kind in ("Pod", "PyTorchJob"):
        (tmp_path / "k8s.yaml").write_text(f"apiVersion: v1\nkind: {kind}\n")
        with pytest.raises(ConfigError, match=f"is a manifest .{kind}.: no training command that is read"):
            add(tmp_path / "k8s.yaml")


def test_variables_of_a_container_are_known_to_what_it_runs(tmp_path):
    given = "          containers:\n          - env: [{name: MODEL, value: llama2-7b}, {name: N, valueFrom: {}}]\n"
    said = MANIFEST.replace("model_name=llama2-7b", "model_name=$MODEL")
    (tmp_path / "k8s.yaml").write_text(
        said.replace("          containers:\n          - command:", f"{given}            command:")
    )
    assert add(tmp_path / "k8s.yaml").model.layers == 32
    twice = said.replace(
        "      replicas: 2\n",
        "      replicas: 2\n      other: [{env: [{name: MODEL, value: x}]}, {env: [{name: MODEL, value: y}]}]\n",
    )
    (tmp_path / "k8s.yaml").write_text(twice)
    with pytest.raises(ConfigError, match="sets model_name by a variable whose value is not said"):
        add(tmp_path / "k8s.yaml")


@given(text=st.text(alphabet="mMaxText.train benchmrk_()[]{}='\"\\\n,:#$*+-\0", max_size=300))
def test_whatever_starts_a_run_the_answer_is_an_experiment_or_one_clear_line(tmp_path_factory, text):
    folder = tmp_path_factory.getbasetemp()
    for name, start in (("x.sh", "python -m MaxText.train "), ("x.py", "MaxTextModel("), ("x.yaml", "kind: Pod\n")):
        (folder / name).write_text(start + text)
        with contextlib.suppress(AsapError):
            add(folder / name)


OPEN = kept(__file__)["OPEN"]
SAID = {"model": "llama2-7b", "batch": "2", "length": "4096", "tensor": "2", "remat": "minimal"}


@pytest.mark.parametrize("key", list(SAID))
def test_what_a_variable_would_have_to_say_is_asked_and_no_default_of_maxtext(tmp_path, key):
    script = tmp_path / "train.sh"
    script.write_text(OPEN.format(**{**SAID, key: "$NOBODY"}))
    run = Experiment(id="x", hardware=refer_to_hardware("v5e-16")[0])
    with pytest.raises(ConfigError, match=r"by a variable whose value is not said.*add [a-z_]+=…"):
        read_configuration(script, (), run)
    settled = read_configuration(script, ["model_name=llama2-7b", "per_device_batch_size=2", "max_target_length=4096",
        "ici_tensor_parallelism=2", "remat_policy=minimal"], run)  # fmt: skip
    assert (str(settled.plan), settled.workload.global_batch) == ("data=8 model=2 microbatches=1 remat=minimal", 32)
    assert not any("unknown" in note for note in settled.notes)
