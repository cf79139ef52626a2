"""Degrees that are written in a stack's own words and read back are the plan."""

import tomllib

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from asap.core.errors import PlanError
from asap.plans import Mesh, Plan, Remat
from asap.plans.degrees import FOLDED, InexpressiblePlanError, expert_axis
from asap.stacks.launchers import launch_lines, stack_of, start_command
from asap.stacks.megatron.degrees import CONTEXT, EXPERT, to_arguments
from asap.stacks.megatron.stack import hydra_overrides
from asap.stacks.reading import from_settings
from asap.stacks.registry import spec
from asap.stacks.torchtitan.settings import toml_lines
from asap.stacks.writing import to_settings
from launch_lines.lines import COMMANDS, changed
from tests.cases import cases

BATCH, LAYERS = 4096, 96
DEEPSPEED = spec("deepspeed")
POWERS = st.sampled_from((1, 2, 4, 8))


@st.composite
def plans(draw, axes, remats, offloads=((),)):
    mesh = Mesh(**{axis: draw(POWERS) for axis in axes})
    repeats = draw(st.sampled_from((1, 2, 3))) if mesh.stage > 1 else 1
    return Plan(
        ici=mesh, microbatches=draw(st.sampled_from((1, 2, 4, 8))), pipeline_repeats=repeats,
        remat=draw(st.sampled_from(remats)), offload=draw(st.sampled_from(offloads)),
    )  # fmt: skip


def on_top(current: dict, changes: dict) -> dict:
    """What a launcher does with changed arguments: ``False`` takes one away."""
    kept = {key: value for key, value in current.items() if changes.get(key) is not False}
    return kept | {key: value for key, value in changes.items() if value is not False}


MEGATRON = plans(
    ("replica", "seq", "model", "expert", "stage"), (Remat.NONE, Remat.SELECTIVE, Remat.FULL), ((), ("optimizer",))
)


@given(MEGATRON, MEGATRON)
def test_megatron_arguments_read_back_are_the_plan(before, plan):
    moe = {"num_experts": "64", "microbatch_group_size_per_vp_stage": "1"}  # takes any number of microbatches
    current = on_top(moe, to_arguments(before, moe, global_batch=BATCH, layers=LAYERS))
    copied = current.get(EXPERT, "1") == "1" != current.get(CONTEXT, "1")
    assume(not copied or plan.degree("expert") == 1 or plan.degree("seq") == 1)
    changes = to_arguments(plan, current, global_batch=BATCH, layers=LAYERS)
    said = {**on_top(current, changes), "global_batch_size": BATCH}
    assert from_settings(spec("megatron"), said, plan.devices, layers=LAYERS) == plan
    assert to_arguments(plan, on_top(current, changes), global_batch=BATCH, layers=LAYERS) == {}


OF_DEEPSPEED = {"deepspeed": True, "checkpoint_activations": True, "deepspeed_activation_checkpointing": True}


@settings(max_examples=40)
@given(plans(("replica", "model", "stage"), (Remat.NONE, Remat.SELECTIVE, Remat.FULL)), st.sampled_from((1, 4)))
def test_megatron_deepspeeds_arguments_are_its_own(plan, sequence):
    plan = plan.model_copy(update={"pipeline_repeats": 1})
    plan = plan.with_ici(seq=sequence) if plan.degree("model") * plan.degree("stage") == 1 else plan
    read = {**OF_DEEPSPEED, "recompute_granularity": "full", "recompute_method": "uniform", "micro_batch_size": "1"}
    line = launch_lines(plan, "megatron", read, global_batch=BATCH, layers=LAYERS)
    said, _, comment = line.partition("#")
    assert ("--ds-sequence-parallel-size" in said) == (plan.degree("seq") > 1)
    assert ("--micro-batch-size" in said) == ("train_micro_batch_size_per_gpu" in comment)
    assert ("--checkpoint-activations" in comment) == (plan.remat is not Remat.FULL)
    assert ("--recompute-granularity selective" in said) == (plan.remat is Remat.SELECTIVE)
    assert not {"--context-parallel-size", "--recompute-method"} & {*line.split()}


def test_what_megatron_deepspeed_would_refuse_is_refused():
    for text in ("data=8", "replica=2 seq=2 model=2", "stage=8 pipeline_repeats=2", "replica=8 first_moment=bf16"):
        with pytest.raises(PlanError, match="DeepSpeed"):
            launch_lines(Plan.parse(text), "megatron", OF_DEEPSPEED, global_batch=BATCH, layers=LAYERS)


@given(
    plans(("replica", "data", "seq", "model", "expert", "stage"), (Remat.NONE, Remat.MINIMAL, Remat.FULL)),
    st.sampled_from(({}, {"parallelism.tensor_parallel_degree": 4, "training.local_batch_size": 2})),
)
def test_torchtitan_settings_read_back_are_the_plan(plan, current):
    assume(plan.degree("expert") == 1 or plan.degree("seq") == 1)
    assume(plan.pipeline_repeats > 1 or (plan.microbatches or plan.degree("stage")) >= plan.degree("stage"))
    changes = to_settings(spec("torchtitan"), plan, current, global_batch=BATCH, layers=LAYERS)
    document = tomllib.loads(toml_lines(changes))
    pasted = {f"{section}.{key}": value for section, keys in document.items() for key, value in keys.items()}
    assert from_settings(spec("torchtitan"), current | pasted, plan.devices, layers=LAYERS) == plan


def test_groups_of_zero_stage_3_are_not_proposed_where_hugging_face_loads_the_weights():
    plan = Plan.parse("data=8 replica=4 seq=2")
    said = {"zero_optimization.stage": 3, "sequence_parallel_size": 2}
    changes = to_settings(DEEPSPEED, plan, said)
    assert changes == {"zero_optimization.mics_shard_size": "16"}
    assert from_settings(DEEPSPEED, said | changes, 64).ici == plan.ici
    for of_trainer in ({"train_micro_batch_size_per_gpu": "auto"}, {"per_device_train_batch_size": 1}):
        with pytest.raises(PlanError, match="mics_shard_size refuses"):
            to_settings(DEEPSPEED, plan, said | of_trainer)


def test_only_what_changes_is_written():
    current = {"tensor_model_parallel_size": "8", "micro_batch_size": "1", "global_batch_size": "256", "bf16": True}
    plan = Plan(ici=Mesh(replica=16, model=4), microbatches=16)
    line = launch_lines(plan, "megatron", current, global_batch=256)
    assert line == "--tensor-model-parallel-size 4"
    recomputing = plan.model_copy(update={"remat": Remat.FULL})
    line = launch_lines(recomputing, "megatron", current, global_batch=256)
    assert "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1" in line
    changes = to_arguments(recomputing, current, global_batch=256)
    assert "model.activations_checkpoint_granularity=full" in hydra_overrides(changes, "nemo", {})
    line = launch_lines(plan, "torchtitan", {})
    assert line == "[parallelism]\ntensor_parallel_degree = 4\ndata_parallel_replicate_degree = 16"


@cases("current, said")
def test_a_batch_that_the_arguments_do_not_give_is_in_the_line(current, said):
    now = {"tensor_model_parallel_size": "8", "micro_batch_size": "1"} | current
    line = launch_lines(Plan(ici=Mesh(replica=16, model=4), microbatches=16), "megatron", now, global_batch=256)
    assert ("--global-batch-size 256" in line) is said


def test_options_of_a_line_take_the_place_of_those_in_the_command_on_record():
    said = "torchrun pretrain.py --tp 2 --sequence-parallel --modules a b --fsdp 'a b' 2>&1 | tee log"
    line = "# arguments of the program that trains:\n--tp 4 --cp 2 --modules c # without --sequence-parallel"
    assert start_command("megatron", line, said, (), 8, 1) == (
        "torchrun pretrain.py --tp 4 --modules c --fsdp 'a b' --cp 2 2>&1 | tee log"
    )
    assert start_command("nemo", "model.a=2 ++b=3", "python x.py model.a=1", (), 8, 1) == "python x.py model.a=2 ++b=3"
    with pytest.raises(PlanError, match="no whole command"):
        start_command("axolotl", "fsdp_config: {fsdp_version: 2}", said, (), 8, 1)


def test_a_framework_has_the_words_of_its_stack():
    frameworks = {"Megatron-Core": "megatron", "NeMo": "nemo", "torchtitan": "torchtitan", "DeepSpeed": "deepspeed"}
    assert {name: stack_of(name) for name in frameworks} == frameworks
    assert stack_of("MaxText") == stack_of(None) == "maxtext"


@cases("over, experts")
def test_a_whole_line_says_over_which_devices_experts_lie(over, experts):
    plan = Plan.parse("replica=8 seq=2 model=4 expert=4 microbatches=8 remat=none")
    line = launch_lines(plan, "megatron", {FOLDED: tuple(over)})
    assert line.startswith(f"--tensor-model-parallel-size 4 --context-parallel-size 2 {experts} ")
    assert f"parallelism.expert_parallel_degree = {32 if 'seq' in over else 16}".split(".")[1] in launch_lines(
        plan, "torchtitan", {FOLDED: tuple(over)}
    )


def test_what_a_plan_cannot_say_is_said():
    assert expert_axis(64, 1, 8, 1, 16) == 8
    with pytest.raises(InexpressiblePlanError, match="where experts lie"):
        expert_axis(4, 1, 8, 1, 16)
    with pytest.raises(InexpressiblePlanError, match="8 does not divide the 2 devices of a pipeline stage"):
        expert_axis(8, 1, 1, 1, 2)
    with pytest.raises(PlanError, match="not a multiple"):
        from_settings(spec("megatron"), {"tensor_model_parallel_size": 8, "pipeline_model_parallel_size": 16}, 8)
    with pytest.raises(PlanError, match="expert"):
        to_settings(DEEPSPEED, Plan(ici=Mesh(expert=8)), {})
    with pytest.raises(PlanError, match="no degree for data and expert"):
        launch_lines(Plan(ici=Mesh(data=2, expert=8)), "nanotron", {})
    for key, value, why in (("stage", 7, "3, not '7'"), ("offload_optimizer.device", "gpu", "auto, not gpu")):
        with pytest.raises(PlanError, match=why):
            from_settings(DEEPSPEED, {f"zero_optimization.{key}": value}, 8)
    with pytest.raises(PlanError, match="remat=minimal"):
        to_arguments(Plan(remat=Remat.MINIMAL), {})


def test_a_line_replaces_adds_and_leaves_out():
    before = "--micro-batch-size 1 --sequence-parallel --cuda-graph-modules attn moe_router"
    line = "--micro-batch-size 2 --cuda-graph-modules attn --bf16 # without --sequence-parallel --fp16"
    assert changed(before, line) == ("--micro-batch-size", "2", "--cuda-graph-modules", "attn", "--bf16")


def test_each_command_says_its_devices():
    for command in COMMANDS.read_text(encoding="utf-8").splitlines():
        devices, _, arguments = command.partition(" ")
        assert int(devices) % 8 == 0
        assert changed(arguments, "")
