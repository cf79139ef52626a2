"""Each code of the compiler, provoked by a mapping that deserves it."""

import importlib.util
from pathlib import Path

import pytest

from asap.compiler.algorithms.build import BENCHMARKS
from asap.compiler.mapped.failures import Code
from asap.compiler.mapped.judge import judge, judged, read_choices, request_of
from asap.compiler.programs.options import CompileLimits
from asap.compiler.toolchain.compile import compile_all
from asap.compiler.toolchain.process import run_child
from asap.core.errors import BadInputError
from asap.core.feedback import repaired
from asap.hardware import resolve_hardware
from asap.mapping.check import check
from tests.cases import kept

pytestmark = [
    pytest.mark.compiles, pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed"),
]  # fmt: skip

HARDWARE = resolve_hardware("v5e:4x4").slice
PRODUCT = {"m": 1024, "n": 1024, "k": 1024}
COMPILED = [
    (Code.SYNCHRONOUS_COLLECTIVE, "algorithm pumma\nexchange gather", "exchange permute"),
    (Code.RING_LOST, "algorithm cannon\norder f(i, j) = (i * 4 + j) * 7 % 16", "order row"),
    (Code.EXPOSED_COLLECTIVE, "algorithm cannon\noverlap off", "overlap on"),
    (Code.MEMORY_TO_SPARE, "algorithm summa\npanels 4", "panels 1"),
    (Code.LAYOUT_COPY, "algorithm stencil\ngrid (4, 4)", "grid (8, 2)"),
    (Code.COMPUTE_BOUND, "algorithm stencil\nhalo 4", "halo 2"),
    (Code.RESHARDING, "algorithm circuit\nexchange all_to_all", "exchange permute"),
]
FAILED = [
    (Code.LOWERING_ERROR, "algorithm stencil\nhalo 3", {}, "halo 1"),
    (Code.OUT_OF_MEMORY, "algorithm cosma\ngrid (1, 1, 16)", {"m": 131072, "n": 131072, "k": 1024}, "panels 2"),
]


@pytest.fixture(autouse=True)
def _home(home):
    return home


def _compiled(text, problem=None, **limits):
    problem = problem or (
        PRODUCT if "m" in BENCHMARKS[text.split()[1]].problem else BENCHMARKS[text.split()[1]].problem
    )
    (outcome,) = compile_all([request_of(text, HARDWARE, problem)], limits=CompileLimits(**limits))
    return outcome


def _repairs(text, feedback):
    return [repaired(text, [each]) for each in feedback if each.repair]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "text", "line"), COMPILED)
def test_what_takes_the_time_is_told_with_a_repair_that_the_checks_pass(code, text, line):
    choices = read_choices(text if code is not Code.RESHARDING else "algorithm circuit", HARDWARE)
    found = judged(text, choices, _compiled(text), HARDWARE)
    assert found.status == "done"
    told = [each for each in found.feedback if each.code == code]
    assert told
    assert all(each.explanation and each.suggestion for each in told)
    edited = _repairs(text, told)
    assert any(line in each.split("\n") for each in edited)
    assert all(check(each, None, HARDWARE).feedback == () for each in edited)


@pytest.mark.parametrize(("code", "text", "problem", "line"), FAILED)
def test_what_cannot_be_compiled_is_told_with_a_repair(code, text, problem, line):
    found = judge(text, HARDWARE, problem or None)
    assert (found.status, [each.code for each in found.feedback]) == ("rejected", [code])
    assert any(line in each.split("\n") for each in _repairs(text, found.feedback))


def test_memory_that_is_missing_is_told_in_figures():
    _, text, problem, _ = FAILED[1]
    (found,) = judged(text, read_choices(text, HARDWARE), _compiled(text, problem), HARDWARE).feedback
    assert "GiB of HBM, and 15.8 GiB are there" in found.explanation


def test_a_compiler_that_does_not_finish_is_no_error_of_ours():
    text = "algorithm summa\npanels 4"
    found = judged(text, read_choices(text, HARDWARE), _compiled(text, seconds=0.0), HARDWARE)
    assert (found.status, [each.code for each in found.feedback]) == ("failed", [Code.TIMEOUT])
    assert "panels 1" in _repairs(text, found.feedback)[0]


def test_a_compiler_that_dies_says_where():
    text = "algorithm summa\ngrid (16, 1)\nstationary A\npanels 2"
    request = request_of(text, HARDWARE, {"m": 8192, "n": 8192, "k": 16384}).model_copy(update={"effort": "least"})
    found = judged(text, read_choices(text, HARDWARE), run_child(request, CompileLimits()), HARDWARE)
    assert (found.status, [each.code for each in found.feedback]) == ("failed", [Code.COMPILER_CRASH])
    assert "Check failed" in found.feedback[0].explanation
    assert "panels 1" in _repairs(text, found.feedback)[0]


WITHOUT_COMMON_PARTS = kept(__file__)["WITHOUT_COMMON_PARTS"]
"""The line of index arithmetic that a first version of SUMMA lacked, taken out again where Python starts."""


def test_a_wrong_result_is_told_before_anything_is_compiled(home, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_COMMON_PARTS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(__file__).parents[2]}")
    text = "algorithm summa\ngrid (2, 4)\nstationary A\npanels 2"
    found = judge(text, resolve_hardware("v5e:2x4").slice)
    assert (found.status, [each.code for each in found.feedback]) == ("rejected", [Code.WRONG_RESULT])
    assert "right and in the wrong place" in found.feedback[0].explanation
    assert "panels 1" in _repairs(text, found.feedback)[0]
    assert not (home / "compiled").exists()


def test_every_code_is_provoked():
    others = {Code.TIMEOUT, Code.COMPILER_CRASH, Code.WRONG_RESULT}
    assert {code for code, *_ in (*COMPILED, *FAILED)} | others == set(Code)


def test_a_program_without_an_algorithm_is_refused():
    with pytest.raises(BadInputError, match="chooses no algorithm"):
        judge("mesh data=16", HARDWARE)
