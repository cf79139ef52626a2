"""Stages as torchtitan splits a model, and plans that it refuses."""

import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import PlanError
from asap.plans import Plan
from asap.stacks.launchers import inexpressible, launch_lines
from asap.stacks.reading import from_settings
from asap.stacks.registry import spec

TOML = {"model.flavor": "8B", "parallelism.data_parallel_shard_degree": 8, "training.local_batch_size": 8}
GRAPHS = {"training.num_tokens_per_microbatch_per_dp_rank": 16384, "training.max_context_length": 2048}
EACH = "parallelism.pipeline_parallel_layers_per_stage"


def pasted(plan: Plan, layers: int, **current: object) -> dict[str, object]:
    sections = tomllib.loads(launch_lines(plan, "torchtitan", TOML | current, layers=layers))
    return TOML | current | {f"{name}.{key}": value for name, keys in sections.items() for key, value in keys.items()}


def virtual_stages(settings: dict[str, object], layers: int) -> int:
    """As ``_resolve_pipeline_stages`` counts them."""
    ends = sum(
        int(str(settings.get(f"parallelism.pipeline_parallel_{end}_stage_less_layers", 1))) for end in ("first", "last")
    )
    return math.ceil((layers + ends) / int(str(settings[EACH])))


@given(
    st.sampled_from((1, 2, 4)), st.sampled_from((2, 4, 8)), st.sampled_from((1, 2, 3)), st.sampled_from(({}, {EACH: 3}))
)
def test_layers_of_a_stage_make_as_many_stages_as_the_plan_has(repeats, stages, deep, current):
    layers = stages * repeats * deep
    plan = Plan.parse(f"data=2 stage={stages} pipeline_repeats={repeats} microbatches={2 * stages}")
    settings = pasted(plan, layers, **current)
    if EACH in settings:
        assert virtual_stages(settings, layers) == stages * repeats
    read = from_settings(spec("torchtitan"), settings, plan.devices, layers=layers)
    assert (read.degree("stage"), read.pipeline_repeats) == (stages, repeats)


def test_microbatches_of_an_interleaved_schedule_are_rounds_of_as_many():
    plan = Plan.parse("data=2 stage=4 pipeline_repeats=2 microbatches=11")
    with pytest.raises(PlanError, match="11 microbatches do not divide into 2 rounds over 4 stages"):
        launch_lines(plan, "torchtitan", TOML, layers=32)
    assert inexpressible(plan.model_copy(update={"microbatches": 10}), "torchtitan", TOML, None, 32) is None


@pytest.mark.parametrize(("current", "plan", "reason"), [
    (TOML, "replica=4 model=2", "with FSDP only"), (TOML, "replica=4 data=2 model=2", None),
    (TOML | {"configured_in_python": True}, "replica=4 model=2", None),
    (TOML | {"model.name": "qwen3"}, "data=4 stage=2 microbatches=4", "no pipeline for qwen3"),
    (TOML | {"model.name": "llama3"}, "data=4 stage=2 microbatches=4", None),
    (TOML | {"model.name": "deepseek_v3"}, "data=4 seq=2", "no context parallelism for deepseek_v3"),
    (GRAPHS | {"model.name": "deepseek_v3", "model.flavor": "16B"}, "data=4 seq=2", None),
    (TOML | {"parallelism.spmd_backend": "partial_dtensor"}, "data=4 seq=2", 'parallelism.spmd_backend = "spmd_types"'),
    (TOML | {"parallelism.spmd_backend": "spmd_types"}, "data=4 seq=2", None),
    (GRAPHS | {"model.attn_backend": "varlen"}, "data=4 seq=2", "attention, but with model.attn_backend=flex"),
    (GRAPHS | {"model.name": "gpt_oss"}, "data=4 seq=2", "attention, but with model.attn_backend=flex"),
    (GRAPHS | {"model.name": "gpt_oss", "model.attn_backend": "flex"}, "data=4 seq=2", None),
    (TOML, "stage=4 microbatches=2", "fewer than the 4 stages"), (TOML, "stage=4 microbatches=4", None),
])  # fmt: skip
def test_plans_that_torchtitan_refuses_are_no_proposals(current, plan, reason):
    assert (inexpressible(Plan.parse(plan), "torchtitan", current, None, 32) or "").endswith(reason or "")
    assert (inexpressible(Plan.parse(plan), "torchtitan", current, None, 32) is None) == (reason is None)


@pytest.mark.parametrize(("current", "plan", "needed"), [
    (GRAPHS, "data=4 stage=2 microbatches=4", True), (GRAPHS, "data=4 expert=2", True),
    (GRAPHS | {"parallelism.expert_parallel_degree": 4}, "expert=8", False),
    (GRAPHS | {"parallelism.expert_parallel_degree": 4}, "expert=4 stage=2 microbatches=4", True),
    (GRAPHS | {"training.disable_cuda_graphs": True}, "data=4 stage=2 microbatches=4", False),
    (GRAPHS, "data=8", False), (TOML, "data=4 stage=2 microbatches=4", False),
])  # fmt: skip
def test_cuda_graphs_go_where_a_plan_does_not_take_them(current, plan, needed):
    line = launch_lines(Plan.parse(plan), "torchtitan", current, layers=32)
    assert ("disable_cuda_graphs = true" in line) == needed
