"""What Megatron-LM checks before it trains, in the lines to paste."""

from asap.plans import Plan
from asap.stacks.launchers import inexpressible, launch_lines
from tests.cases import cases, kept

DENSE = kept(__file__)["DENSE"]
UNEVEN = {"decoder_first_pipeline_num_layers": "15", "decoder_last_pipeline_num_layers": "15"}
OVERLAPPED = {"num_experts": "8", "overlap_moe_expert_parallel_comm": True}
NOW = "replica=2 model=4 stage=2 microbatches=16"


def line(plan: str, **beside: object) -> str:
    return launch_lines(Plan.parse(plan), "megatron", DENSE | beside, global_batch=32, layers=32)


def refusal(plan: str, **beside: object) -> str | None:
    return inexpressible(Plan.parse(plan), "megatron", DENSE | beside, 32, 32)


def test_an_offloaded_optimizer_is_precision_aware_and_distributed():
    wanted, _, remark = line(f"{NOW} offload=optimizer").partition("  # ")
    assert (wanted, "0.12.0" in remark) == ("--optimizer-cpu-offload --use-precision-aware-optimizer", True)
    assert "--use-distributed-optimizer" in line(f"{NOW} offload=optimizer", use_distributed_optimizer=False)
    assert "--use-distributed-optimizer" in line(f"{NOW} second_moment=bf16", use_distributed_optimizer=False)


def test_layers_of_experts_run_tensor_parallel_with_sequence_parallelism_alone():
    assert "--sequence-parallel" in line("replica=4 model=2 stage=2", num_experts="8", sequence_parallel=False)
    assert "--sequence-parallel" not in line("replica=8 stage=2", num_experts="8", sequence_parallel=False)


@cases("beside, plan, goes")
def test_an_option_that_a_plan_leaves_no_room_for_goes(beside, plan, goes):
    options = [f"--{option.replace('_', '-')}" for option in beside if option != "num_experts"]
    _, _, dropped = line(plan, **beside).partition("# without ")
    assert all((option in dropped.split()) == goes for option in options)


@cases("beside, plan, reason")
def test_a_plan_that_megatron_refuses_beside_what_is_set_is_no_proposal(beside, plan, reason):
    assert reason in (refusal(plan, **beside) or "")


def test_what_megatron_takes_is_not_refused():
    assert refusal(f"{NOW} offload=optimizer", fp8_param_gather=True) is None
    assert refusal(NOW, cuda_graph_impl="local") is None
    assert refusal(f"{NOW} remat=selective", cuda_graph_impl="local", attention_dropout="0.0") is None
    assert refusal("replica=1 seq=2 model=4 stage=2", hierarchical_context_parallel_sizes=None) is None
    assert refusal("replica=1 seq=2 model=4 stage=2", hierarchical_context_parallel_sizes="2 1") is None
    assert refusal("replica=4 stage=4 pipeline_repeats=2 microbatches=8") is None
