import pytest

from asap.compiler.programs.options import FLAGS_VARIABLE, RECOMMENDED, REFERENCE_STEP, CompileOptions, compiler_flags
from asap.compiler.verify import verify
from asap.core.errors import BadInputError, UsageError
from asap.experiments import Experiment, HardwareReference
from asap.flags.table import flag_group
from asap.plans import Plan


@pytest.mark.parametrize(
    "choice", [REFERENCE_STEP, CompileOptions(maxtext=True, effort="least"), CompileOptions(train_step="mine:step")]
)
def test_whose_step_it_was_comes_back_from_a_record(choice):
    assert CompileOptions.from_record(choice.to_record()) == choice


def test_a_record_without_a_choice_is_of_the_reference_step():
    assert CompileOptions.from_record({}) == REFERENCE_STEP


def test_no_program_that_a_record_names_is_run(monkeypatch):
    record = CompileOptions(maxtext=True, python="/tmp/theirs").to_record() | {"python": "/tmp/theirs"}
    assert CompileOptions.from_record(record).python == ""
    monkeypatch.setenv("ASAP_PYTHON", "/opt/maxtext/bin/python")
    assert CompileOptions.from_record(record).python == "/opt/maxtext/bin/python"


def test_two_steps_are_one_too_many():
    with pytest.raises(UsageError, match="mutually exclusive"):
        CompileOptions(train_step="mine:step", maxtext=True)


def test_what_is_no_flag_is_refused_before_anything_is_compiled():
    with pytest.raises(UsageError, match="is no flag"):
        CompileOptions(flags=("--xla_a=1", "xla_b=1"))
    assert "flags" not in CompileOptions(flags=("--xla_a=1",)).to_record()


def test_flags_of_the_tpu_compiler_are_not_for_gpus():
    record = Experiment(id="x", hardware=HardwareReference(name="h100-8"), plan=Plan.parse("data=8"))
    with pytest.raises(BadInputError, match="those of the TPU compiler"):
        verify(record, [Plan.parse("data=8")], CompileOptions(flags=("--xla_tpu_a=1",)))


PLAN = Plan.parse("data=8 remat=full")


def test_flags_on_record_win_over_those_of_the_environment_and_of_the_chip(monkeypatch):
    monkeypatch.delenv(FLAGS_VARIABLE, raising=False)
    assert compiler_flags("v6e", {}, PLAN) == RECOMMENDED["v6e"]
    monkeypatch.setenv(FLAGS_VARIABLE, "--a=1")
    assert compiler_flags("v6e", {}, PLAN) == ("--a=1",)
    assert compiler_flags("v6e", {FLAGS_VARIABLE: "--b=2 --c=3"}, PLAN) == ("--b=2", "--c=3")
    assert compiler_flags("v6e", {"compile_xla_flags": "--d=4"}, PLAN) == ("--d=4",)


def test_a_plan_that_keeps_something_in_host_memory_gets_the_flags_for_it(monkeypatch):
    monkeypatch.delenv(FLAGS_VARIABLE, raising=False)
    offloading = Plan.parse("data=8 remat=offload offload=activations")
    assert compiler_flags("v6e", {}, offloading)[len(RECOMMENDED["v6e"]) :] == flag_group("host_offload")
    assert compiler_flags("v6e", {FLAGS_VARIABLE: "--b=2"}, offloading) == ("--b=2",)
    assert compiler_flags("h100", {}, offloading) == ()
