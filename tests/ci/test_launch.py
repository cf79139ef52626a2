import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.ci.launch import read_launch

SCRIPT = """\
#!/bin/bash
# python3 -m MaxText.train commented.yml ici_fsdp_parallelism=1
export FSDP=16
OUTPUT=$(date)
python3 -m MaxText.train configs/run.yml \\
  run_name="my run" ici_fsdp_parallelism=${FSDP} per_device_batch_size=${BATCH:-4} \\
  base_output_directory=${OUTPUT} steps=10; echo ici_tensor_parallelism=9
"""


def test_overrides_of_the_command_and_no_others_are_read():
    launch = read_launch(SCRIPT)
    assert launch.config == "configs/run.yml"
    assert launch.overrides == (
        "run_name=my run",
        "ici_fsdp_parallelism=16",
        "per_device_batch_size=4",
        "steps=10",
    )
    assert launch.unknown == ("base_output_directory",)
    assert launch.line == 5


@pytest.mark.parametrize(
    "command",
    [
        "python3 src/MaxText/train.py MaxText/configs/base.yml ici_fsdp_parallelism=8",
        "python -m MaxText.train_compile MaxText/configs/base.yml ici_fsdp_parallelism=8",
        "python -m maxtext.trainers.pre_train.train MaxText/configs/base.yml ici_fsdp_parallelism=8",
        "X=1 nohup python3 MaxText/train.py MaxText/configs/base.yml ici_fsdp_parallelism=8 2>&1 | tee log",
    ],
)
def test_the_ways_of_starting_maxtext(command):
    launch = read_launch(command)
    assert (launch.config, launch.overrides) == ("MaxText/configs/base.yml", ("ici_fsdp_parallelism=8",))


def test_hardware_of_a_launcher_around_the_command_is_read():
    launch = read_launch(
        'xpk workload create --tpu-type=v5p-512 --num-slices 2 --command "pip list && '
        'python3 -m MaxText.train base.yml ici_fsdp_parallelism=256"'
    )
    assert (launch.hardware, launch.slices, launch.overrides) == ("v5p-512", 2, ("ici_fsdp_parallelism=256",))


@given(st.text(alphabet="maxtext.train=\"'\\\n $({})-:;&|ab#`", max_size=200))
def test_no_script_is_too_odd(script):
    launch = read_launch(f"python -m MaxText.train {script}")
    assert all("$" not in override for override in launch.overrides)


def test_a_line_without_end_is_no_command():
    assert read_launch("maxtext/" * 100_000 + " a=b") is None


def test_a_variable_is_not_blown_up():
    value = "x" * 10_000
    launch = read_launch(f"A={value}\npython3 -m MaxText.train a.yml run_name={'$A' * 1_000} steps=5")
    assert (launch.overrides, launch.unknown) == (("steps=5",), ("run_name",))


@pytest.mark.parametrize("script", ["", "echo train.py a=b", "python train.py a.yml a=1", "'unclosed MaxText", "\\"])
def test_other_scripts_have_none(script):
    assert read_launch(script) is None
