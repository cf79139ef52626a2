import pytest

from asap.compiler.programs.request import CompileRequest
from asap.compiler.reference.expressible import mapping_target, program_lines
from asap.compiler.reference.layout import check_mesh_only, check_program_expressible, lines_text
from asap.compiler.reference.segments import Layer, Segment, first_layers, split_segments
from asap.core.errors import PlanError
from asap.mapping.language.parse import parse
from asap.mapping.plan_program import plan_text
from asap.models import Architecture, Workload
from asap.plans import Plan, Remat
from tests.cases import cases, kept

MODEL = Architecture(layers=6, d_model=32, d_ff=64, heads=8, kv_heads=2, head_dim=8, vocab=64)
LINES = kept(__file__)["LINES"]


def test_lines_are_told_layer_by_layer():
    lines = program_lines(lines_text(parse(LINES)[0]), MODEL, Workload())
    assert [lines.said("shard", "query", layer) for layer in range(6)] == [{}, {}, {"embed": ()}, {"embed": ()}, {}, {}]
    assert [lines.remat(layer) for layer in range(6)] == [None, None, None, None, Remat.MINIMAL, None]
    assert (lines.setting("dtype", "query", 1), lines.setting("dtype", "up", 1)) == ("fp32", "bf16")
    assert lines.setting("place", "up", 1) == ""
    assert lines.cuts == (2, 4, 5)


def test_a_program_that_equals_its_plan_asks_for_the_same_compilation():
    plan = Plan.parse("data=4 remat=full offload=optimizer")
    assert lines_text(parse(plan_text(plan))[0]) == ""
    one, other = (parse(text)[0] for text in (LINES, "\n".join(reversed(LINES.splitlines()))))
    assert lines_text(one) == lines_text(other) != ""
    request = CompileRequest(chip="v5e", topology=(2, 2), slices=1, plan=plan, model=MODEL)
    mapped = request.model_copy(update={"mapping": lines_text(one)})
    assert mapped.fingerprint({}) != request.fingerprint({})


def test_segments_are_split_where_lines_begin_and_end():
    dense, routed = Layer(False, None), Layer(True, None)
    parts = (Segment((dense,), 2), Segment((dense, routed), 4))
    assert split_segments(parts, ()) == parts
    assert split_segments(parts, (1, 6)) == (
        Segment((dense,), 1), Segment((dense,), 1), Segment((dense, routed), 2), Segment((dense, routed), 2),
    )  # fmt: skip
    cut = split_segments(parts, (5,))
    assert cut[1:] == (
        Segment((dense, routed), 1), Segment((dense,), 1), Segment((routed,), 1), Segment((dense, routed), 2),
    )  # fmt: skip
    assert first_layers(cut) == [0, 2, 4, 5, 6]


@cases("text, reason")
def test_what_the_reference_step_does_not_do_is_refused_with_the_line(text, reason):
    workload = Workload(head_gathered_once=True, loss_chunks=2)
    with pytest.raises(PlanError, match=reason) as told:
        check_program_expressible(parse(text)[0], workload, 2 if "dcn" in text else 1, 1)
    assert told.value.message.startswith("line 2:1: ")


def test_of_a_program_a_step_of_ones_own_gets_the_mesh():
    check_mesh_only(parse("mesh data=4\norder fold")[0], 1, 1)
    for line in ("remat full", "shard * by embed over none", "microbatches 2"):
        with pytest.raises(PlanError, match=r"line 2:1: your own step decides this itself"):
            check_mesh_only(parse(f"mesh data=4\n{line}")[0], 1, 1)


def test_every_parameter_of_the_step_has_a_name_in_the_language():
    model = Architecture(
        layers=4, d_model=32, d_ff=64, heads=8, kv_heads=2, head_dim=8, vocab=64, experts=4, experts_per_token=1,
        expert_d_ff=8, moe_every=2, qk_norm=True,
    )  # fmt: skip
    by_layer = {(tensor.name, tensor.layers) for tensor in mapping_target(model).parameters}
    assert {("query", (0, 1, 2, 3)), ("up", (0, 2)), ("expert_up", (1, 3)), ("head", ())} <= by_layer
