"""torchtitan's configurations in Python: read without running them, and proposals as their statements."""

import pytest

from asap.core.errors import ConfigError, PlanError
from asap.optimize.evaluators.run.command import words
from asap.plans import Plan
from asap.proposals.proposal import Overrides
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import read

__all__ = ["read"]

REGISTRY = """
from torchtitan.components.quantization import Float8LinearConverter
from torchtitan.config import ParallelismConfig, TrainingConfig
from torchtitan.distributed.activation_checkpoint import FullAC
from torchtitan.models.llama3 import model_registry
from torchtitan.trainer import Trainer

raise SystemExit("never run")


def large() -> Trainer.Config:
    model_spec = model_registry("70B")
    return Trainer.Config(
        model_spec=model_spec,
        optimizer=default_adamw(lr=1.5e-4),
        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=8 * 8192, max_context_length=8192),
        parallelism=ParallelismConfig(tensor_parallel_degree=8),
        activation_checkpoint=FullAC.Config(),
    )


def in_fp8() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("70B", converters=[Float8LinearConverter.Config()]),
        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=8 * 8192, max_context_length=8192),
        parallelism=ParallelismConfig(tensor_parallel_degree=4),
        activation_checkpoint=None,
    )


def plain() -> Trainer.Config:
    return Trainer.Config(model_spec=model_registry("8B"))


def open_() -> Trainer.Config:
    training = TrainingConfig(max_context_length=int(os.environ["LENGTH"]))
    return Trainer.Config(model_spec=model_registry("8B"), training=training)


def changed() -> Trainer.Config:
    config = large()
    config.activation_checkpoint = None
    return config
"""


def test_a_configuration_by_its_name(read):
    run = read("registry.py", REGISTRY, "config=large", hardware="h100-128")
    assert (run.model.name, run.model.layers, run.workload.precision) == ("llama3 70B", 80, "bf16")
    assert str(run.plan) == "data=16 model=8 microbatches=1 remat=full"
    assert (run.workload.global_batch, run.workload.sequence_length) == (128, 8192)
    line = launch_lines(
        Plan.parse("data=32 model=4 microbatches=2 remat=minimal"), "torchtitan", run.hyperparameters, global_batch=128
    )
    assert line.splitlines() == [
        "config.parallelism.tensor_parallel_degree = 4",
        "config.activation_checkpoint = SelectiveAC.Config()",
        "config.training.num_tokens_per_microbatch_per_dp_rank = 16384",
        "config.training.num_tokens_per_train_step = 1048576",
    ]


@pytest.mark.parametrize(
    ("loss", "chunks"),
    [
        ("ChunkedLossWrapper.Config(loss_fn=CrossEntropyLoss.Config())", 8),
        ("ChunkedCELoss.Config(num_chunks=4)", 4),
        ("CrossEntropyLoss.Config()", None),
    ],
)
def test_a_loss_in_parts(read, loss, chunks):
    text = REGISTRY.replace("model_spec=model_spec,", f"model_spec=model_spec, loss={loss},")
    run = read("registry.py", text, "config=large", hardware="h100-128")
    assert run.workload.loss_chunks == chunks
    assert read("registry.py", text, "config=large", "--loss.num_chunks=2").workload.loss_chunks == 2


def test_converters_and_one_of_defaults(read):
    run = read("registry.py", REGISTRY, "config=in_fp8", "parallelism.context_parallel_degree=2", hardware="h100-128")
    assert (str(run.plan), run.workload.precision) == ("data=16 seq=2 model=4 microbatches=1 remat=none", "fp8")
    plain = read("registry.py", REGISTRY, "config=plain", hardware="h100-8")
    assert (str(plain.plan), plain.workload.global_batch) == ("data=8 microbatches=1 remat=minimal", 64)


@pytest.mark.parametrize(
    ("said", "kernel"),
    [
        ('"8B"', "flex"),
        ('"8B", attn_backend="flex_flash"', "flex (flash attention 4)"),
        ('"8B", attn_backend="varlen"', "varlen"),
    ],
)
def test_the_backend_says_which_attention_runs(read, said, kernel):
    run = read("registry.py", REGISTRY.replace('"8B"', said), "config=plain", hardware="b200-8")
    assert run.workload.attention == kernel


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ((), r"has 5 configurations .name one with config=NAME: large, in_fp8"),
        (("config=other",), "has no configuration other"),
        (("config=open_",), r"training\.max_context_length cannot be told without running it"),
        (("config=changed",), r"changed returns no literal Trainer\.Config.*save_config_file"),
    ],
)
def test_what_cannot_be_told_is_one_line(read, chosen, said):
    with pytest.raises(ConfigError, match=said):
        read("registry.py", REGISTRY, *chosen, hardware="h100-8")


def test_statements_are_flags_except_for_what_is_recomputed():
    statements = "config.training.steps = 5\nconfig.a.b = True\nconfig.a.c = False"
    assert words(Overrides(torchtitan=statements)) == "--training.steps=5 --a.b --a.no_c"
    assert words(Overrides(torchtitan="[training]\nenable_cpu_offload = false")) == "--training.no_enable_cpu_offload"
    with pytest.raises(PlanError, match="which no flag says"):
        words(Overrides(torchtitan="config.activation_checkpoint = None"))


@pytest.mark.parametrize(
    ("said", "more", "compiled"),
    [
        ("compile=CompileConfig(enable=True),", (), True),
        ('compile=CompileConfig(enable=True, components=["loss"]),', (), False),
        ("", (), False),
        ("compile=choose(),", (), None),
        ("compile=choose(),", ("compile.enable=true",), True),
    ],
)
def test_whether_the_model_is_compiled_is_read_or_unknown(read, said, more, compiled):
    text = REGISTRY.replace("activation_checkpoint=FullAC.Config(),", f"activation_checkpoint=FullAC.Config(), {said}")
    run = read("config_registry.py", text, "config=large", *more)
    assert run.workload.compiled is compiled


EARLIER = """
from torchtitan.components.quantization.float8 import Float8LinearConverter
from torchtitan.config import ActivationCheckpointConfig, ParallelismConfig, TrainingConfig
from torchtitan.models.llama3 import model_registry


def large() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("70B"),
        model_converters=ModelConvertersContainer.Config(converters=[Float8LinearConverter.Config()]),
        training=TrainingConfig(local_batch_size=4, seq_len=8192, steps=int(os.environ["STEPS"])),
        parallelism=ParallelismConfig(tensor_parallel_degree=8),
        activation_checkpoint=ActivationCheckpointConfig(mode="full"),
    )

"""


def test_batches_in_sequences_modes_and_converters_as_before_august_2026(read):
    run = read("config_registry.py", EARLIER, "config=large", hardware="h100-64")
    assert str(run.plan) == "data=8 model=8 microbatches=1 remat=full"
    assert (run.workload.global_batch, run.workload.sequence_length, run.workload.precision) == (32, 8192, "fp8")
    line = launch_lines(
        Plan.parse("data=16 model=4 microbatches=1 remat=none"), "torchtitan", run.hyperparameters, global_batch=32
    )
    assert line.splitlines() == [
        "config.parallelism.tensor_parallel_degree = 4",
        "config.training.local_batch_size = 2",
        'config.activation_checkpoint.mode = "none"',
    ]


def test_a_trainer_of_ones_own_is_one(read):
    own = EARLIER.replace("-> Trainer.Config", "-> TrainerConfig").replace(
        "return Trainer.Config(", "return TrainerConfig("
    )
    assert str(read("configs.py", own, "config=large", hardware="h100-64").plan).startswith("data=8 model=8")


def test_a_script_that_names_a_configuration_in_python(read, tmp_path):
    start = (
        "MODULE=${MODULE:-llama3}\ntorchrun --nproc_per_node=8 --nnodes 8 -m torchtitan.train --module $MODULE"
        " --config large --training.seq_len 4096 --metrics.log_freq 1\n"
    )
    with pytest.raises(ConfigError, match=r"large of llama3, whose config_registry\.py is not there"):
        read("train.sh", start)
    (tmp_path / "llama3").mkdir()
    (tmp_path / "llama3" / "config_registry.py").write_text(EARLIER)
    run = read("train.sh", start)
    assert (run.hardware.devices, run.workload.global_batch, run.workload.sequence_length) == (64, 32, 4096)


def test_a_function_that_needs_arguments_is_no_configuration(read):
    helper = "\n\ndef _sized(local: int) -> Trainer.Config:\n    return large()\n"
    one = REGISTRY.partition("def in_fp8")[0] + helper
    assert read("config_registry.py", one, hardware="h100-64").plan is not None
