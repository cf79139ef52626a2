"""Recipes of NeMo 2, in Python and by command, read without running them; NeMo's launcher and archives."""

import ast

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.plans.launchers import launch_lines
from tests.experiments.stack_configurations import NEMO, read

__all__ = ["read"]

PROGRAM = """
import nemo_run as run
from nemo.collections import llm
from nemo.collections.llm.recipes.precision.mixed_precision import bf16_with_fp8_mixed


def configure(nodes: int = 1, gpus_per_node: int = 8):
    recipe = llm.llama3_70b.pretrain_recipe(dir="/ckpt", name="x", num_nodes=nodes, num_gpus_per_node=gpus_per_node)
    recipe.trainer.strategy.tensor_model_parallel_size = 4
    recipe.trainer.strategy.pipeline_model_parallel_size = 2
    recipe.trainer.strategy.virtual_pipeline_model_parallel_size = 5
    recipe.trainer.strategy.context_parallel_size = 1
    recipe.trainer.strategy.sequence_parallel = True
    recipe.data.global_batch_size = 128
    recipe.data.micro_batch_size = 1
    recipe.data.seq_length = 8192
    recipe.model.config.recompute_granularity = "full"
    recipe.model.config.recompute_method = "uniform"
    recipe.model.config.recompute_num_layers = 1
    return recipe


def main():
    recipe = configure(nodes=4)
    recipe.trainer.plugins = bf16_with_fp8_mixed()
    executor = run.LocalExecutor(ntasks_per_node=recipe.trainer.devices)
    with run.Experiment("x") as exp:
        exp.add(run.Partial(llm.import_ckpt), executor=executor)
        exp.add(recipe, executor=executor)
        exp.run()


if __name__ == "__main__":
    main()
"""
DIRECT = """
from nemo import lightning as nl
from nemo.collections import llm

model = llm.LlamaModel(llm.Llama31Config8B())
strategy = nl.MegatronStrategy(tensor_model_parallel_size=2, context_parallel_size=2, sequence_parallel=True)
trainer = nl.Trainer(devices=8, num_nodes=2, strategy=strategy, plugins=nl.MegatronMixedPrecision("bf16-mixed"))
data = llm.MockDataModule(seq_length=8192, global_batch_size=64, micro_batch_size=1)
llm.pretrain(model=model, data=data, trainer=trainer)
"""
COMMAND = """
: "${NODES:=2}"
ARGS=(
    --factory "mixtral_8x7b(name='x', num_nodes=$NODES, num_gpus_per_node=8)"
    trainer.strategy.tensor_model_parallel_size=1 trainer.strategy.pipeline_model_parallel_size=4
    trainer.strategy.virtual_pipeline_model_parallel_size=8 trainer.strategy.context_parallel_size=1
    trainer.strategy.expert_model_parallel_size=4
    data.global_batch_size=64 data.micro_batch_size=1 data.seq_length=4096 trainer.max_steps=20
)
nemo llm pretrain "${ARGS[@]}" -y
"""


def test_a_recipe_with_what_a_program_changes(read):
    run = read("pretrain.py", PROGRAM)
    assert (run.model.layers, run.hardware.devices, run.workload.framework) == (80, 32, "NeMo")
    assert str(run.plan) == "replica=4 model=4 stage=2 microbatches=32 pipeline_repeats=5 remat=full"
    work = run.workload
    assert (work.global_batch, work.sequence_length, work.precision, work.sequence_parallel) == (128, 8192, "fp8", True)
    assert work.zero_stage == 1
    assert any("what llama3_70b does not change is that of NeMo 2.0 to 2.4" in note for note in run.notes)


def test_what_a_recipe_decides_itself_is_asked_for(read):
    silent = PROGRAM.replace("recipe.trainer.strategy.pipeline_model_parallel_size = 2", "pass")
    silent = silent.replace("recipe.model.config.recompute_granularity", "recipe.x").replace("llama3_70b", "llama2_70b")
    run = read("pretrain.py", silent)
    assert run.plan is None
    assert any("hangs on pipeline_model_parallel_size" in note for note in run.notes)
    said = read("pretrain.py", silent, "pipeline_model_parallel_size=2")
    assert said.plan is not None
    assert said.plan.remat is None


def test_what_a_recipe_of_the_library_decides_is_known_where_its_releases_agree(read):
    bare = "\n".join(line for line in PROGRAM.splitlines() if "recipe.trainer.strategy" not in line)
    bare = "\n".join(line for line in bare.splitlines() if "recipe.data" not in line and "recompute" not in line)
    run = read("pretrain.py", bare)
    assert str(run.plan) == "seq=2 model=4 stage=4 microbatches=512 pipeline_repeats=5 remat=none"
    assert (run.workload.global_batch, run.workload.sequence_length) == (512, 8192)
    differs = read("pretrain.py", bare.replace("llama3_70b", "llama31_405b"))
    assert any("hangs on pipeline_model_parallel_size;" in note for note in differs.notes)
    taken = bare.replace("num_nodes=nodes", "num_nodes=nodes, tensor_parallelism=2, global_batch_size=args.batch")
    assert (read("pretrain.py", taken).plan.degree("model"), read("pretrain.py", taken).workload.global_batch) == (
        2,
        None,
    )
    own = bare.replace("return recipe", "recipe.data = run.Config(OurData, seq_length=4096)\n    return recipe")
    assert read("pretrain.py", own).workload.global_batch is None
    told = read("pretrain.py", bare.replace("return recipe", "recipe.data = data_of(args)\n    return recipe"))
    assert (told.workload.global_batch, told.workload.sequence_length) == (None, None)
    placed = read("pretrain.py", bare.replace("return recipe", "recipe.trainer.strategy = made()\n    return recipe"))
    assert placed.plan is None
    fast = bare.replace("num_nodes=nodes", "num_nodes=nodes, performance_mode=True")
    assert read("pretrain.py", fast).plan is None


def test_a_model_of_another_length_than_the_recipes_data_is_asked_about(read):
    silent = PROGRAM.replace("recipe.data.seq_length = 8192", "recipe.model.config.seq_length = 1024")
    run = read("pretrain.py", silent)
    assert run.workload.sequence_length is None
    assert any("says sequences of 1024, the recipe's data are of 8192: add seq_length=…" in note for note in run.notes)
    assert read("pretrain.py", silent, "seq_length=1024").workload.sequence_length == 1024


def test_fp8_of_the_model_is_what_the_plugin_of_precision_says(read):
    silent = PROGRAM.replace("    recipe.trainer.plugins = bf16_with_fp8_mixed()\n", "")
    silent = silent.replace("recipe.data.micro_batch_size = 1", 'recipe.model.config.fp8 = "hybrid"')
    run = read("pretrain.py", silent)
    assert run.workload.precision == "bf16"
    assert any("fp8 of the model's configuration has no effect" in note for note in run.notes)


def test_a_recipe_in_a_loop_is_read_as_of_its_first_round(read):
    looped = PROGRAM.replace(
        "    recipe = configure(nodes=4)\n", "    for degree in (8, 4):\n        recipe = configure(4)\n"
    )
    lines = looped.splitlines()
    start = lines.index("        recipe = configure(4)") + 1
    end = lines.index('if __name__ == "__main__":')
    body = ["        recipe.trainer.strategy.tensor_model_parallel_size = degree"]
    body += [f"    {line}" for line in lines[start:end]]
    run = read("pretrain.py", "\n".join([*lines[:start], *body, *lines[end:]]))
    assert run.plan.degree("model") == 8
    assert any("in a loop; the first round is read" in note for note in run.notes)
    over = "\n".join([*lines[:start], *body, *lines[end:]]).replace("(8, 4)", "range(args.most)")
    assert any("hangs on tensor_model_parallel_size" in note for note in read("pretrain.py", over).notes)


def test_shapes_that_a_program_changes(read):
    small = 'recipe.model.config.num_layers = 8\n    recipe.model.config.hidden_size = 2048\n    recipe.name = "x"'
    run = read(
        "pretrain.py",
        PROGRAM.replace("recipe.data.micro_batch_size = 1", f"{small}\n    recipe.data.micro_batch_size = 1"),
    )
    assert (run.model.layers, run.model.d_model, run.model.head_dim, run.model.kv_heads) == (8, 2048, 32, 8)
    assert any("llama3_70b with layers=8, d_model=2048" in note for note in run.notes)


@pytest.mark.parametrize("said", ["", ", peft_scheme='lora'", ", peft_scheme=args.peft"])
def test_adapters_are_refused_also_where_they_are_the_default(read, said):
    tuned = PROGRAM.replace("pretrain_recipe(", "finetune_recipe(").replace(
        ", num_nodes=nodes", f"{said}, num_nodes=nodes"
    )
    with pytest.raises(ConfigError, match="trains adapters"):
        read("tune.py", tuned)
    whole = PROGRAM.replace("pretrain_recipe(", "finetune_recipe(peft_scheme=None, ")
    assert read("tune.py", whole).plan is not None


def test_a_program_without_a_recipe_has_the_defaults_of_nemo(read):
    run = read("train.py", DIRECT)
    assert (run.model.layers, run.workload.precision, run.workload.zero_stage) == (32, "bf16", None)
    assert str(run.plan) == "replica=4 seq=2 model=2 microbatches=16 remat=none"


@pytest.mark.parametrize("alias", ["nr", None])
def test_nemo_run_under_another_name(read, alias):
    text = PROGRAM.replace("import nemo_run as run", f"import nemo_run as {alias}" if alias else "import nemo_run")
    text = text.replace("run.LocalExecutor", f"{alias or 'nemo_run'}.LocalExecutor")
    start = text.index("    executor = ")
    end = text.index("if __name__")
    text = f"{text[:start]}    {alias or 'nemo_run'}.run(recipe)\n\n\n{text[end:]}"
    assert read("pretrain.py", text).plan == read("pretrain.py", PROGRAM).plan


def test_train_of_nemo_is_a_run(read):
    called = DIRECT.replace("llm.pretrain", "llm.train").replace("num_nodes=2, ", "")
    run = read("train.py", called)
    assert (run.model.layers, run.hardware.devices, run.workload.global_batch) == (32, 8, 64)
    with pytest.raises(ConfigError, match="trains adapters"):
        read("train.py", called.replace("trainer=trainer)", "trainer=trainer, model_transform=llm.peft.LoRA())"))


@pytest.mark.parametrize("other", ["vlm.llava_next_7b", "llm.t5_220m", "llm.mamba2_1_3b", "llm.bert_110m"])
def test_other_models_than_decoders_are_refused(read, other):
    with pytest.raises(ConfigError, match="only decoders of attention and MLPs are read"):
        read("pretrain.py", PROGRAM.replace("llm.llama3_70b", other))
    with pytest.raises(ConfigError, match=r"trains llm\.BertModel"):
        read("train.py", DIRECT.replace("llm.LlamaModel", "llm.BertModel"))
    assert read("pretrain.py", PROGRAM.replace("llama3_70b", "nemotron3_8b")).workload.global_batch == 128


def test_a_recipe_that_a_variable_holds_is_asked_for(read):
    chosen = PROGRAM.replace(
        "    recipe = llm.llama3_70b", "    chosen = llm.llama3_8b if small else llm.llama3_70b\n    recipe = chosen"
    )
    run = read("pretrain.py", chosen)
    assert run.model.layers is None
    assert "the model is not said by name: add model=NAME" in run.notes


def test_f_strings_of_a_later_python_are_no_obstacle(read):
    later = PROGRAM.replace("def main", """path = f'{os.environ['HOME']}/x'\n\n\ndef main""")
    assert read("pretrain.py", later).plan is not None


def test_a_program_that_runs_nothing_literal_says_what_to_give(read):
    with pytest.raises(ConfigError, match="runs no recipe of NeMo 2") as error:
        read("x.py", "from nemo.collections import llm\nrecipe = build(llm.pretrain_recipe)\n")
    assert "--plan" in (error.value.hint or "")


def test_a_recipe_that_a_command_starts(read):
    run = read("run.sh", COMMAND)
    assert (run.model.experts, run.hardware.devices) == (8, 16)
    assert run.plan.degree("stage") == 4
    assert run.plan.degree("expert") == 4
    assert run.plan.pipeline_repeats == 8
    with pytest.raises(ConfigError, match="factory of nothing"):
        read("run.sh", "nemo llm pretrain trainer.max_steps=2\n")


def test_plans_are_written_back_into_the_recipe(read):
    plan = Plan.parse("replica=8 model=2 stage=2 microbatches=16 pipeline_repeats=5 remat=none")
    run = read("pretrain.py", PROGRAM)
    lines = launch_lines(plan, "nemo", run.hyperparameters, global_batch=128, layers=80)
    assert sorted(lines.splitlines()) == [
        "recipe.model.config.recompute_granularity = None",
        "recipe.model.config.recompute_method = None",
        "recipe.model.config.recompute_num_layers = None",
        "recipe.trainer.strategy.tensor_model_parallel_size = 2",
    ]
    ast.parse(lines)
    sharded = launch_lines(
        Plan.parse("data=32 microbatches=4"), "nemo", run.hyperparameters, global_batch=128, layers=80
    )
    assert "recipe.trainer.strategy.fsdp = 'megatron'" in sharded.splitlines()
    assert "recipe.trainer.strategy.virtual_pipeline_model_parallel_size = None" in sharded.splitlines()
    command = read("run.sh", COMMAND)
    plan = Plan.parse("replica=4 expert=4 microbatches=2")
    words = launch_lines(plan, "nemo", command.hyperparameters, global_batch=64, layers=32).split()
    assert "trainer.strategy.pipeline_model_parallel_size=1" in words
    assert "data.micro_batch_size=2" in words


def test_the_launcher_of_nemo_names_its_configuration(read, tmp_path):
    start = (
        "python3 $ROOT/main.py stages=[training] training=llama/small training.trainer.num_nodes=2 base_results_dir=x"
    )
    with pytest.raises(ConfigError, match=r"conf/training/llama/small\.yaml, which is not there") as error:
        read("run.sh", start)
    assert "trainer.num_nodes=2" in (error.value.hint or "")
    (tmp_path / "conf" / "training" / "llama").mkdir(parents=True)
    (tmp_path / "conf" / "training" / "llama" / "small.yaml").write_text(NEMO)
    run = read("run.sh", f"{start} training.model.tensor_model_parallel_size=2")
    assert (run.hardware.devices, run.plan.degree("model")) == (16, 2)
    (tmp_path / "launcher_scripts").mkdir()
    (tmp_path / "conf").rename(tmp_path / "launcher_scripts" / "conf")
    assert read("run.sh", start).model.layers == run.model.layers


def test_the_launcher_of_nemo_tunes(read, tmp_path):
    (tmp_path / "conf" / "peft").mkdir(parents=True)
    tuned = NEMO.replace("encoder_seq_length: 8192", "encoder_seq_length: ${peft.model.data.train_ds.max_seq_length}")
    tuned = tuned.replace("distributed_optim}", "distributed_optim, grad_sync_dtype: bf16}")
    tuned += "  peft:\n    peft_scheme: null\n  data:\n    train_ds:\n      max_seq_length: 1024\n"
    (tmp_path / "conf" / "peft" / "sft.yaml").write_text(tuned)
    start = "python3 $ROOT/main.py training=other peft=sft stages=[peft] training.trainer.num_nodes=4"
    start += " peft.trainer.num_nodes=2"
    run = read("run.sh", start)
    assert (run.hardware.devices, run.workload.sequence_length, run.model.layers) == (16, 1024, 32)
    assert run.workload.gradient_precision == "bf16"
    assert not any("not resolved" in note for note in run.notes)
    with pytest.raises(ConfigError, match="peft is lora"):
        read("run.sh", f"{start} peft.model.peft.peft_scheme=lora")


def test_an_architecture_inside_an_archive_is_asked_for(read):
    tuned = "\n".join(line for line in NEMO.splitlines() if not line.strip().startswith(("num_", "hidden", "ffn")))
    tuned = tuned.replace("\nmodel:\n", "\nmodel:\n  restore_from_path: /m/base-8b.nemo\n")
    notes = read(
        "tune.yaml", tuned + "\n  hidden_size: 64\n".replace("  hidden_size: 64\n", ""), hardware="h100-64"
    ).notes
    assert "the architecture is inside /m/base-8b.nemo, which is not opened" in notes
    assert any("model=NAME" in note for note in notes)


def test_what_only_the_environment_tells_is_asked(read):
    program = PROGRAM.replace("tensor_model_parallel_size = 4", "tensor_model_parallel_size = int(os.getenv('TP'))")
    program = program.replace("global_batch_size = 128", "global_batch_size = int(settings['batch'])")
    run = read("run.py", program)
    assert run.plan is None
    assert run.workload.global_batch is None
    assert any("hangs on tensor_model_parallel_size" in note for note in run.notes)
    assert read("run.py", program, "tensor_model_parallel_size=4", "global_batch_size=64").plan is not None
