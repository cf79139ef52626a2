"""A program measured with few layers: what is started, what is worked out, and what is refused."""

import json
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asap.calibration.own_program import Depth, OwnProgram
from asap.core.errors import InsufficientEvidenceError, UsageError
from asap.experiments import ExperimentStore
from asap.study.open_study import open_study
from tests.cases import kept
from tests.homes import home

__all__ = ["home"]
RUN = "llama-8b-tensor-16"
TRAINER = kept(__file__)["TRAINER"]


def program() -> OwnProgram:
    return OwnProgram.of(open_study(RUN, ExperimentStore()))


def predicted(run_command):
    (found,) = json.loads(run_command("predict", RUN, "--format", "json").out)["predictions"][:1]
    return found["step_time"]


@settings(max_examples=20)
@given(slower=st.floats(0.5, 2.0), stages=st.sampled_from([1, 2, 4]), leading=st.sampled_from([0, 3]))
def test_the_whole_step_follows_from_two_depths_where_the_model_is_off_by_a_factor(slower, stages, leading):
    own = program()
    model = own.run.architecture.model_copy(update={"leading_dense_layers": leading})
    mesh = own.run.plan.ici.model_copy(update={"stage": stages})
    own = replace(own, run=replace(own.run, architecture=model, plan=own.run.plan.model_copy(update={"ici": mesh})))
    small, large = own.depths
    assert small % stages == large % stages == 0
    assert leading < small < large
    times = zip(own.depths, own.predicted(*own.depths), strict=True)
    measured = [Depth(layers, slower * seconds) for layers, seconds in times]
    (whole,) = own.reading(measured).runs
    (full,) = own.predicted(model.layers or 0)
    assert whole.step_time == pytest.approx(slower * full, rel=1e-6)


@pytest.mark.parametrize("depths", [(Depth(2, 1.0), Depth(4, 0.9)), (Depth(2, 1.0, 0.05), Depth(4, 1.1, 0.05))])
def test_two_depths_that_tell_no_layer_are_refused(depths):
    with pytest.raises(InsufficientEvidenceError, match="do not tell"):
        program().reading(depths)


def test_without_a_command_the_script_is_printed_and_nothing_runs(run_command, home):
    done = run_command("accuracy", "calibrate", "--own", RUN)
    assert done.code == 0
    assert "base_num_decoder_layers=2" in done.out
    assert "base_num_decoder_layers=4" in done.out
    assert all(word in done.out for word in ("sbatch", "ray job submit", "kubectl", "--log own-2.log --log own-4.log"))
    assert run_command("accuracy", "calibrate").code == 3


def test_nothing_runs_without_a_yes(run_command, home, tmp_path):
    done = run_command("accuracy", "calibrate", "--own", RUN, "--command", f"touch {tmp_path}/ran {{overrides}}")
    assert (done.code, "chip-hours beside start-up" in done.err) == (2, True)
    assert not (tmp_path / "ran").exists()


def test_the_program_that_ran_corrects_predictions_until_it_is_forgotten(run_command, home, tmp_path):
    (trainer := tmp_path / "train.py").write_text(TRAINER)
    before = predicted(run_command)
    start = f"{sys.executable} {trainer} {{overrides}}"
    done = run_command("accuracy", "calibrate", "--own", RUN, "--command", start, "--yes")
    assert done.code == 0, done.err
    assert "2 layers 1.00 s, 4 layers 1.60 s: 300 ms a layer, 400 ms fixed" in done.out
    after = predicted(run_command)
    assert after["high"] / after["low"] < before["high"] / before["low"]
    (kept,) = json.loads(run_command("accuracy", "calibrate", "--format", "json").out)["runs"]
    assert kept["step_time_s"] == pytest.approx(0.4 + 0.3 * 32, rel=0.05)
    assert (after["value"] < before["value"]) == (kept["step_time_s"] < kept["predicted_s"])
    assert "of the same program" in run_command("predict", RUN).out
    assert run_command("accuracy", "calibrate", "--forget").code == 0
    assert predicted(run_command) == before


def test_logs_of_a_named_model_with_few_layers_are_read(run_command, home, tmp_path):
    sizes = "per_device_batch_size: 1\nmax_target_length: 8192\nici_fsdp_parallelism: 16\nici_tensor_parallelism: 16"
    arguments = ["accuracy", "calibrate", "--own", RUN]
    for layers in (2, 4):
        said = f"model_name: llama3.1-8b\noverride_model_config: True\nbase_num_decoder_layers: {layers}\n{sizes}"
        steps = [f"completed step: {n}, seconds: {0.4 + 0.3 * layers:.3f}, loss: 9.1" for n in range(20)]
        (log := tmp_path / f"own-{layers}.log").write_text(
            "\n".join([*(f"Config param {line}" for line in said.splitlines()), *steps])
        )
        arguments += ["--log", str(log)]
    done = run_command(*arguments)
    assert "2 layers 1.00 s, 4 layers 1.60 s: 300 ms a layer, 400 ms fixed" in done.out, done.err


def test_a_launcher_without_an_option_for_layers_needs_a_place_in_the_command():
    own = replace(program(), stack="torchtitan")
    with pytest.raises(UsageError, match="number of layers"):
        own.command("./train.sh {overrides}", 2)
    assert own.command("./train.sh --n {layers}", 2)[0] == "./train.sh --n 2 # {overrides}"
