from math import comb, prod

from hypothesis import given
from hypothesis import strategies as st

from asap.models import Architecture, Workload
from asap.plans import AXES, Plan
from asap.plans.enumeration import enumerate_plans, factorisations
from asap.plans.validity import Constraints, unchecked, violations
from asap.stacks.constraints import constraints_of
from tests.cases import cases

facts = st.builds(
    Constraints, devices_per_slice=st.sampled_from([1, 6, 8, 12, 16, 64]), slices=st.just(1),
    global_batch=st.none() | st.integers(1, 64), sequence_length=st.none() | st.sampled_from([96, 1024, 4096]),
    heads=st.none() | st.integers(1, 64), kv_heads=st.none() | st.integers(1, 16),
    experts=st.none() | st.integers(0, 16), layers=st.none() | st.integers(1, 48),
    sharded_width=st.none() | st.sampled_from([64, 2880, 4096]),
)  # fmt: skip


@given(facts)
def test_the_enumeration_is_exactly_what_breaks_no_rule(constraints):
    everything = [
        Plan().with_ici(**dict(zip(AXES, map(int, row), strict=True)))
        for row in factorisations(constraints.devices_per_slice)
    ]
    assert enumerate_plans(constraints) == [plan for plan in everything if not violations(plan, constraints)]


@given(st.integers(min_value=1, max_value=600))
def test_factorisations_are_complete_and_distinct(devices):
    table = factorisations(devices)
    assert (table.prod(axis=1) == devices).all()
    assert len({tuple(row) for row in table}) == len(table)
    exponents, rest = [], devices
    for prime in range(2, devices + 1):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        exponents.append(count)
    assert len(table) == prod(comb(count + len(AXES) - 1, len(AXES) - 1) for count in exponents)


@cases("plan, rule, words")
def test_each_broken_rule_is_one_clear_sentence(plan, rule, words):
    constraints = constraints_of(
        Architecture(heads=12, kv_heads=3, layers=30, d_model=2884), Workload(global_batch=12, sequence_length=100), 8
    )
    broken = {violation.rule: violation.sentence for violation in violations(Plan.parse(plan), constraints)}
    assert words in broken[rule]


def test_kv_heads_may_repeat_over_a_longer_model_axis():
    constraints = Constraints(heads=16, kv_heads=4)
    assert not violations(Plan.parse("model=8"), constraints)
    assert not violations(Plan.parse("model=2"), constraints)


@cases("framework, valid")
def test_the_width_divides_over_fsdp_where_jax_shards_it(framework, valid):
    constraints = constraints_of(Architecture(d_model=2880), Workload(framework=framework), 128)
    assert (violations(Plan.parse("data=128"), constraints) == []) == valid
    assert not violations(Plan.parse("replica=2 data=64"), constraints)


@cases("model, plan, rules")
def test_what_torchtitan_cannot_split_and_others_can(model, plan, rules):
    shapes = {"layers": 32, "d_model": 4096, "d_ff": 14336, "heads": 32, "kv_heads": 8, "head_dim": 128, "vocab": 1000}
    architecture = Architecture.model_validate(shapes | model)
    of_heads = [rule for rule in rules if rule == "whole_kv_heads"]
    found = dict.fromkeys(("nanotron", "NeMo", "DeepSpeed"), of_heads) | {"torchtitan": rules, "Megatron-LM": []}
    for framework, wanted in found.items():
        workload = Workload(global_batch=64, framework=framework)
        broken = violations(Plan.parse(plan), constraints_of(architecture, workload, Plan.parse(plan).devices))
        assert [violation.rule for violation in broken] == wanted


def test_microbatches_divide_the_batch_too():
    constraints = Constraints(global_batch=16)
    assert not violations(Plan.parse("data=4 microbatches=4"), constraints)
    assert violations(Plan.parse("data=8 microbatches=4"), constraints)


def test_unknown_facts_are_said_to_be_unchecked():
    assert unchecked(Constraints(devices_per_slice=8, slices=1, global_batch=4)) == (
        "sequence", "heads", "kv_heads", "experts", "layers", "width"
    )  # fmt: skip


def test_an_incumbent_proves_what_divides():
    proven = Constraints().proven_by(Plan.parse("replica=2 data=4 seq=8"))
    assert (proven.global_batch, proven.sequence_length) == (8, 8)
    assert Constraints(global_batch=64).proven_by(Plan.parse("data=4")).global_batch == 64


def test_what_does_not_limit_a_stack_or_a_model_is_not_called_unknown():
    latent = Architecture(heads=128, kv_heads=128, kv_lora_rank=512, layers=61)
    known = constraints_of(latent, Workload(framework="Megatron-Core"), 8)
    assert not {"width", "kv_heads"} & {*unchecked(known)}
    assert not violations(Plan.parse("model=8"), known)
    assert "width" in unchecked(constraints_of(latent, Workload(framework="MaxText"), 8))
