"""Texts of stacks that are known and not read: programs, and scripts by the command that starts a run."""

import re
from collections.abc import Iterable
from pathlib import Path

from asap.core.errors import ConfigError, UnreadError
from asap.core.text import plain
from asap.experiments.named_model import SHAPES

INSTEAD = (
    f"give the model's config.json as --config, or {SHAPES} without it, and --hardware, --batch, --sequence and --plan"
)
RENDERED = "give what helm template prints of the chart with these values, as one file"
TOKENS = "read are runs that train all parameters of a decoder on tokens"

Named = tuple[re.Pattern[str], str, str]
"""What a text has that is of a stack, what the file then is, and what to give instead."""

PROGRAMS: tuple[Named, ...] = (
    (
        re.compile(r"^[ \t]*(from|import) olmo_core\b", re.MULTILINE),
        "OLMo-core program",
        "give config.json, which a run of it saves in its checkpoints",
    ),
    (re.compile(r"^[ \t]*(from|import) (easydel|eformer)\b", re.MULTILINE), "EasyDeL program", INSTEAD),
    (re.compile(r"^[ \t]*(from|import) (levanter|marin)\b", re.MULTILINE), "Levanter or Marin program", INSTEAD),
    (re.compile(r"^[ \t]*(from|import) axlearn\b", re.MULTILINE), "AXLearn program", INSTEAD),
    (re.compile(r"^[ \t]*(from|import) (paxml|praxis)\b", re.MULTILINE), "Paxml program", INSTEAD),
    (
        re.compile(r"^[ \t]*(from|import) torchtitan\b", re.MULTILINE),
        "torchtitan program",
        "give the JSON that a run of it writes with --debug.save_config_file=FILE",
    ),
    (
        re.compile(r"^[ \t]*(from|import) megatron\.bridge\b", re.MULTILINE),
        "Megatron-Bridge program",
        "give run_config.yaml, which a run of it writes into its checkpoint",
    ),
    (
        re.compile(r"\A(?=.*^[ \t]*import nemo_run\b).*\brun\.Script\(", re.MULTILINE | re.DOTALL),
        "launcher of NeMo-Run",
        "give the program that it starts, with what it is told as key=value",
    ),
    (
        re.compile(r"^[ \t]*(from|import) (nemo|nemo_run)\b", re.MULTILINE),
        "NeMo 2 program",
        INSTEAD,
    ),
    (
        re.compile(r"\bHfArgumentParser\(|\bTrlParser\("),
        "program of Hugging Face's Trainer that is told all by its command",
        "give the script that starts it, or the YAML of its arguments",
    ),
    (re.compile(r"^[\w.\[\]']*klass: '?axlearn\.", re.MULTILINE), "AXLearn configuration", INSTEAD),
    (
        re.compile(r"\b(?:(?:Online)?DPO|GRPO|PPO|KTO|ORPO|RLOO|CPO|XPO|GKD|Reward|NashMD)(?:Trainer|Config)\("),
        "program of preferences or rewards",
        TOKENS,
    ),
    (re.compile(r"\bSeq2SeqTrain(?:er|ingArguments)\("), "program that trains an encoder with a decoder", TOKENS),
    (re.compile(r"^[ \t]*from vllm import\b", re.MULTILINE), "program that generates text", TOKENS),
    (
        re.compile(r"^[ \t]*(?:from|import) (?:flax|optax|equinox|haiku)\b", re.MULTILINE),
        "JAX program of its own",
        INSTEAD,
    ),
    (re.compile(r"^[ \t]*(?:from|import) (?:pytorch_)?lightning\b", re.MULTILINE), "program of Lightning", INSTEAD),
)

LAUNCHERS: tuple[Named, ...] = (
    (re.compile(r"-m\s+EasyLM\.models\."), "script of EasyLM", INSTEAD),
    (
        re.compile(
            r"\bverl\.trainer\.(?!fsdp_sft_trainer\b)\w+|\bopenrlhf\.cli\.train_\w+"
            r"|\b(?:actor_rollout_ref\.\w|algorithm\.adv_estimator=)"
        ),
        "script of verl or OpenRLHF",
        INSTEAD,
    ),
    (
        re.compile(r"\bllamafactory-cli +train\b"),
        "script of LLaMA-Factory",
        "give the YAML that it trains as --config, and its settings as key=value",
    ),
    (
        re.compile(r"\bscripts/train/(?:[\w-]+/)?OLMo[\w-]*\.py\b"),
        "script of OLMo-core",
        "give config.json, which a run of it saves in its checkpoints",
    ),
    (
        re.compile(r"(?:^|[\s/])nemo(?:run)?\s+llm\s+(?:pretrain|finetune)\s", re.MULTILINE),
        "script of a NeMo 2 recipe, which its program fills",
        INSTEAD,
    ),
    (
        re.compile(r"--yaml[-_]cfg\b"),
        "script that starts Megatron-LM with a YAML",
        "give that YAML as --config",
    ),
    (
        re.compile(r"\brun_recipe\.py\b"),
        "script of a Megatron-Bridge recipe",
        "give run_config.yaml, which a run of it writes into its checkpoint",
    ),
    (
        re.compile(r"\.py\s(?:[^\n;&|]|\\\n)*?--executor[\s=]"),
        "script that starts a launcher of NeMo-Run",
        "give the program that it starts as --config, with what it is told as key=value",
    ),
    (
        re.compile(r"\baxolotl(?:\.cli\.train| train)\b"),
        "script of Axolotl",
        "give the YAML that it trains as --config",
    ),
)
"""By the command that starts a run."""

REWARDED: Named = (
    re.compile(r"(?<![\w-])--(?:rollout-(?:function-path|batch-size|num-gpus|max-response-len)|num-rollout)\b"),
    "script of slime",
    TOKENS,
)
"""Reinforcement learning by Megatron's arguments (THUDM/slime, ``slime/utils/arguments.py``)."""

_OTHER_METHODS = {
    "NeMo-RL": r"\brun_(?:grpo|dpo|sft|rm)\w*\.py\b.*\bcluster\.|\bnemo_rl\b",
    "SkyRL": r"\bskyrl(?:_train)?\.|\btrainer\.algorithm\.advantage_estimator=",
    "AReaL": r"\bareal\.|\ballocation_mode=",
    "ROLL": r"\bstart_(?:rlvr|agentic|dpo|distill|sft)_pipeline\.py\b",
    "cosmos-rl": r"\bcosmos-rl\b",
}
_OTHER_STACKS = {
    "AXLearn": r"\baxlearn\.",
    "Colossal-AI": r"\bcolossalai\s+run\b",
    "dolomite-engine": r"\bdolomite_engine\b",
    "Fast-LLM": r"(?<![\w/])fast-llm\s+train\b",
    "llm.c": r"\btrain_(?:gpt2|llama3)cu\b",
    "OpenLM": r"\bopen_lm\.main\b",
    "Paxml": r"\bpaxml\.main\b",
    "PyTorch/XLA": r"\btorch_xla\b|\btorchprime\b",
    "T5X": r"\bt5x/|\s--gin_file\b",
    "VeOmni": r"\btasks/(?:omni/)?train_(?:torch|text|vlm|omni_model)\w*\.py\b",
    "XTuner": r"(?<![\w/])xtuner\s+train\b",
}
_SERVES = (
    r"\bvllm serve\b|\bvllm\.entrypoints\.|\bsglang\.launch_server\b|\btext-generation-(?:launcher|inference)\b"
    r"|\btrtllm-serve\b|\blmdeploy serve\b"
)
OTHERWISE: tuple[Named, ...] = (
    (
        re.compile(
            r"\b(?:sbatch|qsub|bash|sh|ssh|srun)\b[^\n<]*<<-?[ \t]*['\"\w]|<<[^\n]*\|\s*(?:sbatch|qsub|bash|sh|ssh)\b"
        ),
        "script that hands another one to a shell or a scheduler",
        "give that one, what stands in its here-document, as a file",
    ),
    (re.compile(r"(?<![\w-])helm\s+(?:install|upgrade|template)\b"), "script that installs a Helm chart", RENDERED),
    (re.compile(_SERVES), "script that serves a model", TOKENS),
    (re.compile(r"\bneuron_parallel_compile\b|\bneuronx[-_]"), "script for AWS Neuron", INSTEAD),
    *((re.compile(pattern), f"script of {name}", TOKENS) for name, pattern in _OTHER_METHODS.items()),
    *((re.compile(pattern), f"script of {name}", INSTEAD) for name, pattern in _OTHER_STACKS.items()),
)
"""Where a script starts nothing that is read; one that is read may also serve what it trains."""


def refuse_text(known: Iterable[Named], text: str, path: Path) -> None:
    """Refuse a script or a program of a stack that is not read; raises ConfigError."""
    if (refusal := refusal_of_text(known, text, path)) is not None:
        raise refusal


def refusal_of_text(known: Iterable[Named], text: str, path: Path) -> ConfigError | None:
    """Why a text of one of these stacks is not read; ``None`` where it is of none."""
    return next((refusal(name, instead, path) for pattern, name, instead in known if pattern.search(text)), None)


def refusal(name: str, instead: str, path: Path) -> ConfigError:
    """Why a file is not read.

    Args:
        name: what it is.
        instead: what to give.
        path: the file.
    """
    article = "an" if name[0] in "AEIOUaeio" else "a"
    return UnreadError(f"is {article} {plain(name, 80)}, which is not read", where=str(path), hint=instead)
