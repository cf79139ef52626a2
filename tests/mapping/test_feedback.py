import pytest

from asap.core.feedback import repaired
from asap.mapping.check import check
from asap.mapping.language.feedback import Code
from asap.mapping.language.parse import LONGEST, LONGEST_LINE, MOST_DECISIONS
from tests.cases import kept
from tests.mapping.programs import DENSE, EXPERTS, SLICE

MESH = "mesh data=4 model=4\n"
WRONG = [
    ("TOO_LARGE", f"order f(i, j) = {'-' * 60}i", 2, 1),
    ("TOO_LARGE", "# " + "x" * LONGEST_LINE, 2, LONGEST_LINE + 1),
    *kept(__file__)["WRONG"],
]
WITHOUT_MODEL = kept(__file__)["WITHOUT_MODEL"]


@pytest.mark.parametrize(
    ("code", "program", "line", "column", "target"),
    [(code, MESH + lines, *place, DENSE) for code, lines, *place in WRONG] + [(*one, None) for one in WITHOUT_MODEL],
)
def test_what_is_wrong_has_a_code_a_place_and_a_repair(code, program, line, column, target):
    found = check(program, target, SLICE).feedback
    assert [(each.code, each.line, each.column) for each in found] == [(code, line, column)]
    assert found[0].explanation
    assert found[0].suggestion
    assert check(repaired(program, found), target, SLICE).feedback == ()


def test_every_code_is_provoked():
    provoked = {wrong[0] for wrong in [*WRONG, *WITHOUT_MODEL]}
    assert provoked == set(Code)


def test_a_program_without_a_mesh_gets_one():
    found = check("remat full", DENSE, SLICE).feedback
    assert [each.code for each in found] == [Code.MESH_PRODUCT]
    assert repaired("remat full", found) == "mesh data=16\nremat full"


def test_the_nearest_name_is_suggested_and_words_of_other_stacks_are_known():
    found = check(MESH + "shard embeding by vocabulary over fsdp", DENSE, SLICE).feedback
    assert [each.suggestion for each in found] == ["did you mean embedding?", "write data (FSDP)"]
    found = check("mesh data=16 dcn.data=2", DENSE, SLICE).feedback
    assert [each.suggestion for each in found] == ["write dcn.data=1"]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (MESH + "remat full\n\n  remat minimal", [(4, 3, 2, 1)]),
        ("mesh data=4 model=\nremat fulll\norder snake", [(1, 19, None, None), (2, 7, None, None), (3, 7, None, None)]),
        ("mesh data=0 model=4\nshard query by heads over model", [(1, 11, None, None)]),
    ],
    ids=["a contradiction shows both places", "one slip hides no other", "a mesh that cannot be read is not missing"],
)
def test_each_fault_has_its_place(program, said):
    found = check(program, DENSE, SLICE).feedback
    assert [(each.line, each.column, each.other_line, each.other_column) for each in found] == said


def test_an_axis_that_does_not_divide_one_tensor_of_a_pattern_is_told_until_it_has_its_own_line():
    mesh = "mesh model=16\n"
    pattern = "shard * by heads over model\n"
    assert [each.code for each in check(mesh + pattern, DENSE, SLICE).feedback] == [Code.NOT_DIVISIBLE]
    assert check(mesh + pattern + "shard key, value by heads over none\n", DENSE, SLICE).feedback == ()


def test_decisions_that_agree_are_no_contradiction():
    program = "mesh data=4 expert=4\nshard expert_* by experts over expert\nshard expert_up by experts over expert"
    assert check(program, EXPERTS, SLICE).feedback == ()


def test_what_could_not_be_checked_is_said():
    assert len(check("mesh data=3").unchecked) == 2
    assert check("mesh data=16", DENSE, SLICE).unchecked == ()


@pytest.mark.parametrize(
    "text", ["x" * (LONGEST + 1), "# a\n" * LONGEST, "remat full\n" * (MOST_DECISIONS + 1), "\x00" * 90_000]
)
def test_huge_programs_are_refused_at_a_place(text):
    found = check(text, DENSE, SLICE).feedback
    assert found
    assert all(each.line >= 1 and each.column >= 1 for each in found)


def test_what_was_expected_is_said_as_one_writes_it():
    (found,) = check(MESH + "order f(i, j) = f(j, i)", DENSE, SLICE).feedback
    assert found.suggestion == "expected *, /, %, +, -, ? or a comparison"
