from asap.compiler.programs.options import FLAGS_VARIABLE, RECOMMENDED, compiler_flags
from asap.flags.table import flag_group
from asap.plans import Plan

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
