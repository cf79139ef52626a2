"""Python programs of Megatron-Bridge, read without running them."""

import ast

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.plans.launchers import launch_lines
from tests.experiments.stack_configurations import read, size

__all__ = ["read"]

PROGRAM = """
import torch
from megatron.bridge.recipes.qwen import qwen3_14b_pretrain_config
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.pretrain import pretrain

LENGTH = 16384


def long_context(cfg, context=2):
    cfg.model.context_parallel_size = context
    cfg.model.seq_length = LENGTH
    cfg.dataset.seq_length = LENGTH
    return cfg


def main():
    cfg = qwen3_14b_pretrain_config()
    cfg.model.tensor_model_parallel_size = 4
    cfg.model.pipeline_model_parallel_size = 2
    cfg.model.virtual_pipeline_model_parallel_size = 5
    cfg.model.sequence_parallel = True
    cfg.model.recompute_granularity = None
    cfg.train.global_batch_size, cfg.train.micro_batch_size = 64, 2
    cfg.mixed_precision = "bf16_with_mxfp8_mixed"
    cfg = long_context(cfg)
    pretrain(config=cfg, forward_step_func=forward_step)


if __name__ == "__main__":
    main()
"""
CONTAINER = """
from megatron.bridge.models.llama import Llama31ModelProvider70B
from megatron.bridge.training.config import ConfigContainer, TrainingConfig
from megatron.bridge.training.finetune import finetune

parallel = dict(tensor_model_parallel_size=8)


def train(config):
    finetune(config, forward_step)


optimizer, scheduler = distributed_fused_adam_with_cosine_annealing(max_lr=1e-5)
train(
    ConfigContainer(
        model=Llama31ModelProvider70B(tensor_model_parallel_size=8, context_parallel_size=2),
        train=TrainingConfig(global_batch_size=16, micro_batch_size=1),
        optimizer=optimizer,
        ddp=DistributedDataParallelConfig(use_distributed_optimizer=True, grad_reduce_in_fp32=False),
        dataset=FinetuningDatasetConfig(seq_length=4096),
        mixed_precision=MixedPrecisionConfig(bf16=True, grad_reduce_in_fp32=False),
    )
)
"""
RECIPES = """
from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.config import ConfigContainer


def _base(hf_path: str, *, tp: int = 2, **more) -> ConfigContainer:
    cfg = _pretrain_common()
    cfg.model = AutoBridge.from_hf_pretrained(hf_path).to_megatron_provider(load_weights=False)
    cfg.model.tensor_model_parallel_size = tp
    if "layers" == "layers":
        cfg.model.expert_model_parallel_size = more["experts"]
    return cfg


def ours_small() -> ConfigContainer:
    return _base("Qwen/Qwen3-30B-A3B", experts=4)


def ours_large() -> ConfigContainer:
    return _base("Qwen/Qwen3-235B-A22B", tp=4, experts=8)
"""


def test_what_a_program_changes_of_a_recipe(read):
    run = read("train.py", PROGRAM, hardware="h100-64")
    assert (run.model.layers, run.workload.framework, run.workload.precision) == (40, "Megatron-Bridge", "fp8")
    assert str(run.plan) == "replica=4 seq=2 model=4 stage=2 microbatches=8 pipeline_repeats=5 remat=none"
    work = run.workload
    assert (work.global_batch, work.sequence_length, work.sequence_parallel, work.zero_stage) == (64, 16384, True, 1)


def test_what_it_leaves_is_the_recipes_where_all_releases_agree(read):
    bare = "\n".join(line for line in PROGRAM.splitlines() if "cfg.model." not in line and "cfg.train." not in line)
    bare = bare.replace("cfg.dataset.seq_length = LENGTH", "pass").replace("qwen3_14b", "qwen3_600m")
    run = read("train.py", bare, hardware="h100-8")
    assert (run.model.layers, run.workload.sequence_length) == (28, 4096)
    assert run.plan is not None
    assert any("is that of Megatron-Bridge 0.2 to 0.6" in note for note in run.notes)
    differs = read("train.py", bare.replace("qwen3_600m", "qwen3_30b_a3b"), hardware="h100-8")
    assert (differs.plan, differs.workload.global_batch) == (None, None)
    assert any("hangs on expert_model_parallel_size, pipeline_model_parallel_size" in note for note in differs.notes)


def test_a_precision_that_is_changed_and_not_said_is_the_recipes(read):
    changed = PROGRAM.replace(
        'cfg.mixed_precision = "bf16_with_mxfp8_mixed"', "cfg.mixed_precision.fp8_param_gather = True"
    )
    changed = changed.replace("qwen3_14b_pretrain_config", "our_pretrain_config")
    assert read("pretrain.py", changed).workload.precision is None
    reduced = PROGRAM.replace(
        'cfg.mixed_precision = "bf16_with_mxfp8_mixed"', "cfg.mixed_precision.grad_reduce_in_fp32 = False"
    )
    work = read("pretrain.py", reduced).workload
    assert (work.precision, work.gradient_precision) == ("bf16", "bf16")


def test_an_optimizer_of_another_file_is_known_by_what_makes_it(read):
    made = "opt, schedule = distributed_muon_with_cosine_annealing(lr=1)\n    opt.lr = 1\n    cfg.optimizer = opt\n"
    other = PROGRAM.replace("    cfg = long_context(cfg)\n", f"    {made}    cfg = long_context(cfg)\n")
    assert read("pretrain.py", other).workload.optimizer == "muon"


def test_a_run_that_nemo_run_is_handed(read):
    handed = PROGRAM.replace(
        "    pretrain(config=cfg, forward_step_func=forward_step)",
        "    fn = get_partial_fn(pretrain, cfg, forward_step)\n    run.run(fn)",
    )
    assert read("pretrain.py", handed).plan == read("pretrain.py", PROGRAM).plan


def test_a_recipe_of_version_0_1_is_named_by_its_module(read):
    first = PROGRAM.replace(
        "recipes.qwen import qwen3_14b_pretrain_config", "recipes.qwen.qwen3_14b import pretrain_config"
    )
    first = first.replace("qwen3_14b_pretrain_config()", "pretrain_config(tensor_parallelism=2, global_batch_size=32)")
    bare = "\n".join(line for line in first.splitlines() if "cfg.model." not in line and "cfg.train." not in line)
    run = read("train.py", bare, hardware="h100-16")
    assert (run.model.layers, run.plan.degree("model"), run.workload.global_batch) == (40, 2, 32)
    assert any("is that of Megatron-Bridge 0.1" in note for note in run.notes)


def test_what_an_unknown_recipe_decides_is_asked_for(read):
    own = PROGRAM.replace("megatron.bridge.recipes.qwen", "ours").replace("qwen3_14b_pretrain", "our_pretrain")
    own = own.replace("cfg.model.pipeline_model_parallel_size = 2", "pass")
    notes = read("train.py", own, hardware="h100-64").notes
    assert any("hangs on" in note and "pipeline_model_parallel_size" in note for note in notes)
    assert any("our is not in the catalogue" in note for note in notes)


def test_what_only_a_run_can_tell_is_asked_for(read):
    chosen = PROGRAM.replace("tensor_model_parallel_size = 4", "tensor_model_parallel_size = args.tp")
    chosen = chosen.replace("cfg = long_context(cfg)", "if args.long:\n        cfg.model.context_parallel_size = 4")
    run = read("train.py", chosen, hardware="h100-64")
    assert run.plan is None
    assert any("hangs on context_parallel_size, tensor_model_parallel_size" in note for note in run.notes)
    said = read("train.py", chosen, "tensor_model_parallel_size=4", "context_parallel_size=1", hardware="h100-64")
    assert said.plan.degree("model") == 4


PARSED = """
def parsed():
    parser = argparse.ArgumentParser()
    mesh = parser.add_argument_group("mesh")
    mesh.add_argument("-t", "--tensor-parallel", dest="tp", type=int, default="8")
    parser.add_argument("--batch", type=int, default=os.environ.get("BATCH", 96))
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--stages", type=int, required=True)
    return parser.parse_args()


def main():
    args = parsed()
"""


def test_what_the_command_line_and_the_environment_do_not_say_has_its_default(read):
    program = PROGRAM.replace("\ndef main():\n", PARSED).replace("size = 4", "size = args.tp")
    program = program.replace("= 64, 2", "= args.batch, int(os.getenv('MICRO', '1'))")
    program = program.replace("cfg = long_context(cfg)", "if args.long:\n        cfg = long_context(cfg)")
    run = read("train.py", program, hardware="h100-64")
    assert (run.plan.degree("model"), run.plan.degree("seq"), run.workload.global_batch) == (8, 1, 96)
    taken = next(note for note in run.notes if "the defaults are taken" in note)
    assert taken.endswith("BATCH=96, MICRO=1, batch=96, long=False, tp=8")
    assert read("train.py", program, "tensor_model_parallel_size=2", hardware="h100-64").plan.degree("model") == 2


def test_an_argument_that_has_to_be_said_is_asked_for(read):
    program = PROGRAM.replace("\ndef main():\n", PARSED)
    staged = program.replace("pipeline_model_parallel_size = 2", "pipeline_model_parallel_size = args.stages", 1)
    run = read("train.py", staged.replace("virtual_pipeline_model_parallel_size = 5", "seed = 1"), hardware="h100-64")
    assert run.plan is None
    assert any("hangs on pipeline_model_parallel_size" in note for note in run.notes)


@pytest.mark.parametrize(
    ("helper", "said"),
    [
        ("cfg = with_overrides(cfg, args)", "with_overrides may change the configuration"),
        ("tune(cfg.model)", "tune may change the configuration"),
        ("tune(cfg)\n    check(cfg)", "tune, check may change the configuration, and are not in the file"),
        ("cfg.train.train_iters = 5", None),
    ],
)
def test_functions_of_other_files_that_may_change_it_are_named(read, helper, said):
    run = read("train.py", PROGRAM.replace("cfg = long_context(cfg)", helper), hardware="h100-64")
    assert run.plan.degree("model") == 4
    assert any(note.startswith(said) for note in run.notes) if said else not any("may change" in n for n in run.notes)


def test_a_branch_that_only_a_run_can_tell_leaves_the_configuration_open(read):
    choice = "def chosen(size):\n    if size == args.size:\n        return {}()\n    return {}()\n"
    choice = choice.format("qwen3_14b_pretrain_config", "qwen3_32b_pretrain_config")
    text = PROGRAM.replace("def main", f"{choice}\n\ndef main").replace(
        "cfg = qwen3_14b_pretrain_config()", "cfg = chosen(14)"
    )
    with pytest.raises(ConfigError, match="cannot be told without running it"):
        read("train.py", text)
    known = text.replace("size == args.size", "size == 14")
    assert read("train.py", known, hardware="h100-64").model.layers == 40


def test_a_configuration_without_a_recipe_has_the_defaults_of_the_library(read):
    run = read("tune.py", CONTAINER, hardware="b200-32")
    assert (run.model.layers, run.workload.zero_stage, run.workload.gradient_precision) == (80, 1, "bf16")
    assert (run.workload.precision, run.workload.sequence_length) == ("bf16", 4096)
    assert str(run.plan) == "replica=2 seq=2 model=8 microbatches=8 remat=none"


def test_shapes_of_a_provider(read):
    shapes = "num_layers=8, hidden_size=1024, num_attention_heads=16, ffn_hidden_size=4096, vocab_size=32000"
    own = CONTAINER.replace("Llama31ModelProvider70B(", f"LlamaModelProvider({shapes}, num_query_groups=4, ")
    run = read("tune.py", own, hardware="h100-16")
    assert (run.model.layers, run.model.kv_heads, run.model.gated_mlp, run.model.tied_embeddings) == (8, 4, True, False)
    plain = CONTAINER.replace("Llama31ModelProvider70B(", f"GPTModelProvider({shapes}, seq_length=4096, ")
    run = read("tune.py", plain, hardware="h100-16")
    assert (run.model.gated_mlp, run.model.learned_positions) == (False, 4096)
    assert size(run) < 2e8
    fewer = PROGRAM.replace("cfg = long_context(cfg)", "cfg.model.num_layers = 4")
    assert read("train.py", fewer, hardware="h100-64").model.layers == 4
    untied = PROGRAM.replace("qwen3_14b", "qwen3_4b").replace(
        "cfg = long_context(cfg)", "cfg.model.share_embeddings_and_output_weights = False"
    )
    assert not read("train.py", untied, hardware="h100-64").model.tied_embeddings
    broken = PROGRAM.replace("cfg = long_context(cfg)", "cfg.model.num_layers = 0")
    assert any("the model is unknown" in note for note in read("train.py", broken, hardware="h100-64").notes)


def test_a_file_of_recipes_asks_which(read):
    with pytest.raises(ConfigError, match="has 2 recipes") as error:
        read("recipes.py", RECIPES)
    assert "recipe=NAME: ours_small, ours_large" in (error.value.hint or "")
    run = read("recipes.py", RECIPES, "recipe=ours_large", hardware="h100-64")
    assert (run.model.layers, run.plan.degree("model"), run.plan.degree("expert")) == (94, 4, 8)
    assert (run.workload.global_batch, run.workload.precision) == (32, "bf16")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PROGRAM.replace("qwen3_14b_pretrain_config", "qwen3_14b_peft_config"), "trains adapters"),
        (PROGRAM.replace("qwen3_14b_pretrain_config", "qwen3_14b_finetune_config"), "trains adapters unless peft"),
        (PROGRAM.replace("    cfg.mixed", "    cfg.peft = LoRA(dim=8)\n    cfg.mixed"), "trains adapters (LoRA)"),
        (PROGRAM.replace("qwen3_14b_pretrain_config", "nemotronh_8b_pretrain_config"), "only decoders"),
        (PROGRAM.replace("config=cfg", "config=made[0]"), "cannot be told without running it"),
    ],
)
def test_what_is_not_read_is_refused_in_one_line(read, text, said):
    with pytest.raises(ConfigError) as error:
        read("train.py", text)
    assert said in error.value.message
    whole = PROGRAM.replace("qwen3_14b_pretrain_config()", "qwen3_14b_finetune_config(peft=None)")
    assert read("train.py", whole, "use_megatron_fsdp=false", hardware="h100-64").plan is not None


def test_plans_are_written_back_into_the_program(read):
    run = read("train.py", PROGRAM, hardware="h100-64")
    plan = Plan.parse("replica=8 seq=2 model=4 microbatches=4 remat=full")
    lines = launch_lines(plan, "bridge", run.hyperparameters, global_batch=64, layers=40).splitlines()
    assert "cfg.model.pipeline_model_parallel_size = 1" in lines
    assert "cfg.model.virtual_pipeline_model_parallel_size = None" in lines
    assert "cfg.model.recompute_granularity = 'full'" in lines
    ast.parse("\n".join(lines))
    sharded = launch_lines(
        Plan.parse("data=64 microbatches=1"), "bridge", run.hyperparameters, global_batch=64, layers=40
    )
    assert "cfg.ddp.use_megatron_fsdp = True" in sharded.splitlines()
    again = read(
        "train.py",
        PROGRAM.replace("    pretrain(", f"    {chr(10).join(lines)}".replace("\n", "\n    ") + "\n    pretrain("),
        hardware="h100-64",
    )
    assert str(again.plan) == str(plan)
