"""Each code of the compiler, provoked by a mapping that deserves it."""

import importlib.util

import pytest

from asap.compiler.algorithms.build import BENCHMARKS
from asap.compiler.mapped.codes import Code
from asap.compiler.mapped.difference import Difference
from asap.compiler.mapped.failures import wrong_result
from asap.compiler.mapped.judge import judge, judged, read_choices, request_of
from asap.compiler.programs.options import CompileLimits
from asap.compiler.toolchain.compile import compile_all
from asap.core.errors import BadInputError
from asap.core.feedback import repaired
from asap.hardware import resolve_hardware
from asap.mapping.check import check

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


@pytest.mark.parametrize(
    ("code", "limits"), [(Code.TIMEOUT, {"seconds": 0.0}), (Code.COMPILER_CRASH, {"memory_bytes": 1.0})]
)
def test_a_compiler_that_gives_no_answer_is_no_error_of_ours(code, limits):
    text = "algorithm summa\npanels 4"
    found = judged(text, read_choices(text, HARDWARE), _compiled(text, **limits), HARDWARE)
    assert (found.status, [each.code for each in found.feedback]) == ("failed", [code])
    assert "panels 1" in _repairs(text, found.feedback)[0]


def test_a_wrong_result_names_its_pattern_and_takes_a_choice_back():
    text = "algorithm summa\nstationary A\npanels 4"
    difference = Difference(0.7, "46 of 48 columns are right and in the wrong place")
    found = wrong_result(text, read_choices(text, HARDWARE), difference)
    assert found.code == Code.WRONG_RESULT
    assert "in the wrong place" in found.explanation
    assert "panels 1" in _repairs(text, [found])[0]


def test_every_code_is_provoked():
    others = {Code.TIMEOUT, Code.COMPILER_CRASH, Code.WRONG_RESULT}
    assert {code for code, *_ in (*COMPILED, *FAILED)} | others == set(Code)


def test_a_program_without_an_algorithm_is_refused():
    with pytest.raises(BadInputError, match="chooses no algorithm"):
        judge("mesh data=16", HARDWARE)
