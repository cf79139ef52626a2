from asap.compiler.flags import RECOMMENDED, VARIABLE, compiler_flags


def test_flags_on_record_win_over_those_of_the_environment_and_of_the_chip(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert compiler_flags("v6e", {}) == RECOMMENDED["v6e"]
    monkeypatch.setenv(VARIABLE, "--a=1")
    assert compiler_flags("v6e", {}) == ("--a=1",)
    assert compiler_flags("v6e", {VARIABLE: "--b=2 --c=3"}) == ("--b=2", "--c=3")
    assert compiler_flags("v6e", {"compile_xla_flags": "--d=4"}) == ("--d=4",)
