"""What Megatron-LM refuses beside other arguments is left out or added where a plan is written back."""

import re

import pytest

from asap.core.errors import PlanError
from asap.plans import Plan
from asap.stacks.launchers import Stack, launch_lines, spec_of, stack_of
from asap.stacks.reading import from_settings
from tests.cases import cases
from tests.experiments.stack_configurations import BRIDGE, MEGATRON, NEMO

STAGES = {"tensor_model_parallel_size": "2", "pipeline_model_parallel_size": "4", "micro_batch_size": "1"}
FIRST, LAST = "--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"


def lines(text: str, current: dict, stack: Stack = "megatron", layers: int = 32) -> str:
    return launch_lines(Plan.parse(text), stack, current, global_batch=128, layers=layers)


def test_layers_of_the_first_and_last_stage_hold_for_their_stages_alone():
    uneven = STAGES | {FIRST[2:].replace("-", "_"): "7", LAST[2:].replace("-", "_"): "7"}
    assert FIRST not in lines("replica=4 model=2 stage=4 microbatches=32 remat=full", uneven)
    for text in (
        "replica=8 model=2 stage=2 microbatches=16",
        "replica=4 model=2 stage=4 microbatches=32 pipeline_repeats=2",
    ):
        said, _, without = lines(text, uneven).partition("# without")
        assert FIRST in without
        assert LAST in without
        assert "decoder" not in said
    of_bridge = lines("replica=8 model=2 stage=2 microbatches=16", {"num_layers_in_first_pipeline_stage": 7}, "bridge")
    assert "model.num_layers_in_first_pipeline_stage=null" in of_bridge


def test_the_embedding_counts_as_a_layer_of_a_pipeline():
    counted = STAGES | {
        "account_for_embedding_in_pipeline_split": "True", "account_for_loss_in_pipeline_split": "True",
        "num_layers_per_virtual_pipeline_stage": "1", "global_batch_size": "128",
    }  # fmt: skip
    assert from_settings(spec_of("megatron", {}), counted, 32, layers=30).pipeline_repeats == 8
    uncounted = "replica=8 model=2 stage=2 microbatches=16 pipeline_repeats=5"
    assert "--account-for-loss" in lines(uncounted, counted, layers=30).partition("# without")[2]
    line = lines("replica=8 model=2 stage=2 microbatches=16 pipeline_repeats=8", counted, layers=30)
    assert "account" not in line
    assert "--num-layers-per-virtual-pipeline-stage 2" in line


def test_experts_are_not_exchanged_beside_computing_where_that_is_refused():
    overlapped = {
        "num_experts": "8", "expert_model_parallel_size": "8", "overlap_moe_expert_parallel_comm": "True",
        "delay_wgrad_compute": "True",
    }  # fmt: skip
    word = "--overlap-moe-expert-parallel-comm"
    assert word not in lines("expert=8 replica=2 microbatches=8 remat=selective", overlapped)
    assert word in lines("replica=16 microbatches=8", overlapped).partition("# without")[2]


@cases("said, written")
def test_experts_with_biases_are_not_split_by_tensor_parallelism(said, written):
    line = lines("replica=4 model=2 expert=4 remat=none", {"num_experts": 8} | said)
    assert ("--expert-model-parallel-size 8 --expert-tensor-parallel-size 1" in line) == written


def test_sharded_parameters_are_saved_in_a_format_of_their_own():
    line = lines("data=16 remat=full", {"ckpt_format": "torch_dist"})
    assert "--ckpt-format fsdp_dtensor" in line
    assert "CUDA_DEVICE_MAX_CONNECTIONS other than 1" in line.partition("#")[2]
    sharded = {"use_megatron_fsdp": "True", "data_parallel_sharding_strategy": "optim_grads_params"}
    back = lines("replica=16 remat=full", sharded | {"ckpt_format": "fsdp_dtensor"})
    assert "--ckpt-format torch_dist" in back
    assert "checkpoint.ckpt_format=fsdp_dtensor" in lines("data=16 remat=full", {}, "bridge")


def test_nemo_shards_by_its_own_words():
    line = lines("data=16 remat=full", {}, "nemo")
    for word in ("model.fsdp=true", "model.fsdp_sharding_strategy=full", "model.optim.name=fused_adam"):
        assert word in line
    assert "ckpt_format" not in line
    with pytest.raises(PlanError, match="shards over all"):
        lines("data=8 replica=2 remat=full", {}, "nemo")


def test_a_pipeline_that_stays_whole_is_not_written():
    whole = {"tensor_model_parallel_size": 4, "num_virtual_stages_per_pipeline_rank": 1, "micro_batch_size": 1}
    assert "virtual" not in lines("replica=64 model=2 microbatches=2", whole)
    assert "virtual" in lines("replica=32 model=2 stage=2 microbatches=4 pipeline_repeats=2", whole)


def test_a_setting_that_nemos_yaml_lacks_is_forced_into_it():
    words = lines("replica=4 model=2 seq=2 remat=none", {"tensor_model_parallel_size": 1}, "nemo").split()
    assert {"model.tensor_model_parallel_size=2", "++model.context_parallel_size=2"} <= {*words}
    with pytest.raises(PlanError, match="offloads no optimizer"):
        lines("replica=8 offload=optimizer", {"tensor_model_parallel_size": 1}, "nemo")


def test_nemo_has_sequence_parallelism_with_tensors_split_alone():
    split = {"tensor_model_parallel_size": 2, "sequence_parallel": True}
    assert "model.sequence_parallel=false" in lines("replica=16 remat=none", split, "nemo").split()
    assert "sequence_parallel" not in lines("replica=4 model=4 remat=none", split, "nemo")


PLANS = (
    "replica=64 microbatches=2 remat=full", "data=64 microbatches=2 remat=none", "data=16 model=4 microbatches=4",
    "replica=8 model=4 stage=2 microbatches=8 remat=none", "replica=8 model=2 seq=2 stage=2 microbatches=8",
    "replica=4 model=2 stage=8 microbatches=16 pipeline_repeats=2 remat=full.1/2",
)  # fmt: skip


@pytest.mark.parametrize("text", PLANS)
@pytest.mark.parametrize(("name", "source"), [("train.sh", MEGATRON), ("nemo.yaml", NEMO), ("bridge.yaml", BRIDGE)])
def test_a_file_with_its_line_is_read_as_the_plan(read, name, source, text):
    run, plan = read(name, source, hardware="h100-64"), Plan.parse(text)
    told = {"global_batch": run.workload.global_batch, "layers": run.model.layers}
    line = launch_lines(plan, stack_of(run.workload.framework), run.hyperparameters, **told)
    written, _, without = line.partition("#")
    settings = re.findall(r"[+\w.]+=\S+|--[\w-]+(?: (?!--)\S+)?", written)
    settings += [f"{word}=false" for word in re.findall(r"--[\w-]+", without)]
    given = [word if "=" in word else word.replace(" ", "=") if " " in word else f"{word}=true" for word in settings]
    after = read(name, source, *given, hardware="h100-64")
    assert after.plan.model_copy(update={} if plan.remat else {"remat": None}) == plan, line
