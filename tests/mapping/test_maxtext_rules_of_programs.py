import pytest

from asap.core.errors import PlanError
from asap.mapping.axis_rules import read_rules, write_rules
from asap.mapping.check import check
from asap.mapping.language.format import format_program
from asap.mapping.language.parse import parse
from asap.plans import Plan
from tests.cases import cases, kept
from tests.mapping.programs import DENSE, EXPERTS, SLICE

USUAL = kept(__file__)["USUAL"]
"""As in MaxText's configs/base.yml, commit e591f30c."""

PLAN = Plan.parse("data=4 model=4")


def read(rules, plan=PLAN, target=DENSE, **degrees):
    """Rules merged with MaxText's own, dimension by dimension, as pyconfig does."""
    replaced = [name for name, _ in rules]
    merged = [*(rule for rule in USUAL if rule[0] not in replaced), *rules]
    return read_rules("MaxText", {"logical_axis_rules": merged, **degrees}, plan, target)


@pytest.mark.parametrize("target", [DENSE, EXPERTS])
@pytest.mark.parametrize("plan", ["data=4 model=4", "data=2 seq=2 model=4", "replica=2 data=8"])
def test_maxtexts_own_rules_are_what_a_mesh_does_anyway(target, plan):
    program, left_out = read([], Plan.parse(plan), target)
    assert len(program.decisions) == 1
    assert left_out == ()


def test_rules_of_a_configuration_become_lines_and_rules_again():
    rules = [["embed_vocab", []], ["kv_heads", []], ["mlp", ["fsdp", "tensor"]], ["activation_norm_length", ["tensor"]],
             ["embed", []], ["activation_embed", []]]  # fmt: skip
    program, left_out = read(rules)
    assert left_out == ()
    assert check(format_program(program), DENSE, SLICE).feedback == ()
    written = write_rules(program, DENSE)
    assert sorted(map(list, written)) == sorted(rules)
    assert set(read(written)[0].decisions) == set(program.decisions)


def test_experts_have_rules_of_their_own():
    program, _ = read([["exp", []], ["embed_moe", ["fsdp", "expert"]]], Plan.parse("data=4 expert=4"), EXPERTS)
    assert format_program(program) == (
        "mesh data=4 expert=4\nshard expert_* by experts over none\nshard expert_* by embed over data, expert\n"
    )


def test_rules_without_words_are_named():
    assert read([["norm", ["tensor"]], ["q_lora", []]])[1] == ("norm",)


def test_the_first_rule_of_a_dimension_counts():
    assert read([["embed", ["fsdp"]], ["embed", ["tensor"]]])[0] == read([["embed", ["fsdp"]]])[0]


def test_two_axes_of_maxtext_that_a_plan_has_one_axis_for_are_refused():
    with pytest.raises(PlanError, match="fsdp and fsdp_transpose are both above 1"):
        read([], ici_fsdp_parallelism=2, ici_fsdp_transpose_parallelism=2)


@pytest.mark.parametrize("rules", [["embed"], [["embed"]], [[1, []]], [{"embed": []}]])
def test_rules_that_are_no_pairs_are_refused(rules):
    with pytest.raises(PlanError, match="pairs"):
        read_rules("MaxText", {"logical_axis_rules": rules}, PLAN, DENSE)


@cases("line, reason")
def test_what_maxtexts_rules_cannot_tell_apart_is_refused_with_the_line(line, reason):
    with pytest.raises(PlanError, match=f"line 2:1: logical_axis_rules have {reason}"):
        write_rules(parse(f"mesh data=4 model=4\n{line}")[0], DENSE)
