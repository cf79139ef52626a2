import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, PartitionSpec

from asap.compiler.algorithms.build import BENCHMARKS
from asap.compiler.mapped.judge import read_choices
from asap.compiler.traced.predict_algorithm import AlgorithmPredictor, traced
from asap.compiler.traced.read_jaxpr import operations_of
from asap.core.errors import InsufficientEvidenceError
from asap.hardware import resolve_hardware
from asap.plans.replica_groups import NamedMesh

SQUARE, LINE = resolve_hardware("v5e:4x4").slice, resolve_hardware("v5e:2x2").slice
MIB = 2**20
LINK, HOP = 5e10, 1e-6
PRODUCT = 2 * 8192**3 / (0.82 * 1.97e14)
"""Seconds of the whole product on one device, at the share of the peak that matmuls reach."""


def sends(text):
    choices = read_choices(text, SQUARE)
    operations = traced(choices, BENCHMARKS[choices.algorithm].problem, SQUARE)
    return [each.send for each in operations if each.send is not None], operations


def seconds(text, hardware=SQUARE):
    return AlgorithmPredictor(hardware).seconds(text)


def read(body, *shapes, length=4):
    """Operations of a body on a ring of devices."""
    mapped = jax.shard_map(
        body, mesh=AbstractMesh((length,), ("ring",)), in_specs=PartitionSpec("ring"), out_specs=PartitionSpec("ring"),
        check_vma=False,
    )  # fmt: skip
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    return operations_of(jax.make_jaxpr(mapped)(*arguments).jaxpr, NamedMesh(("ring",), (length,)), 128 * MIB)


def test_cannon_sends_two_blocks_a_step_and_multiplies_all():
    found, operations = sends("algorithm cannon\ngrid (4, 4)")
    assert {each.kind for each in found} == {"collective-permute"}
    assert [each.size for each in found] == [2048 * 2048 * 2] * 8
    assert sum(each.flops.get("bf16", 0) for each in operations) == 2 * 8192**3 / 16


@pytest.mark.parametrize("overlap", ["on", "off"])
def test_shifts_hide_behind_products_only_where_they_may_overlap(overlap):
    shift, product = 32 * MIB / LINK + HOP, PRODUCT / 8
    hidden = max(shift, product) + product if overlap == "on" else product + shift + product
    found = seconds(f"algorithm cannon\ngrid (2, 2)\noverlap {overlap}", LINE)
    assert found == pytest.approx(shift + hidden, rel=0.05)


def test_gathers_of_both_operands_run_one_after_the_other_and_then_the_product():
    found, _ = sends("algorithm summa\ngrid (4, 4)")
    assert [(each.kind, each.operand_size, each.size) for each in found] == [("all-gather", 8 * MIB, 32 * MIB)] * 2
    gather = 24 * MIB / LINK + 3 * HOP
    assert seconds("algorithm summa\ngrid (4, 4)") == pytest.approx(2 * gather + PRODUCT / 16, rel=0.02)


def test_panels_hide_gathers_but_not_reductions():
    text = "algorithm summa\ngrid (4, 4)\n"
    gathered, reduced = (
        seconds(f"{text}stationary {operand}") - seconds(f"{text}stationary {operand}\npanels 4") for operand in "CA"
    )
    assert gathered == pytest.approx(0.75 * PRODUCT / 16, rel=0.15)
    assert reduced < 24 * MIB / LINK


def test_the_order_of_devices_counts():
    skewed = "order f(i, j) = i * 4 + (i + j) % 4"
    text = "algorithm cannon\ngrid (4, 4)\n"
    assert seconds(text + skewed) > seconds(text + "order row")


def test_loops_count_as_often_as_they_run():
    def body(block):
        return lax.fori_loop(0, 5, lambda _, each: lax.ppermute(each, "ring", [(0, 1), (1, 0)]) * 2, block)

    (loop,) = (each for each in read(body, (8, MIB)) if each.body)
    assert loop.times == 5
    assert [each.send.size for each in loop.body if each.send] == [8 * MIB]


def test_a_loop_of_unknown_length_is_refused():
    def body(block):
        return lax.while_loop(lambda each: each.sum() < 1, lambda each: each * 2, block)

    with pytest.raises(InsufficientEvidenceError, match="depends on data"):
        read(body, (4, 4))


def test_the_same_array_is_sent_once_and_not_at_all_by_one_device_alone():
    def body(block):
        return lax.all_gather(block, "ring").sum(0) + lax.all_gather(block, "ring").max(0)

    assert len([each for each in read(body, (4, 8)) if each.send]) == 1
    assert [each for each in read(body, (4, 8), length=1) if each.send] == []


def test_elementwise_work_is_read_and_written_once_and_a_barrier_writes_between():
    fused = read(lambda block: (block + 1) * block, (4, MIB))
    assert [sum(each.size.values()) for each in fused] == [8 * MIB]
    apart = read(lambda block: lax.optimization_barrier(block + 1) * 2, (4, MIB))
    assert [sum(each.size.values()) for each in apart] == [8 * MIB, 0, 8 * MIB]


def test_what_cannot_be_built_says_so():
    with pytest.raises(InsufficientEvidenceError, match="cannot be traced"):
        seconds("algorithm stencil\ngrid (4, 4)\nhalo 3")
