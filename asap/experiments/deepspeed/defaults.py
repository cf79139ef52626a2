"""What programs under DeepSpeed and the Trainer take where they are told nothing."""

import ast
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.files import is_file
from asap.core.text import plain
from asap.experiments.deepspeed.training_arguments import SEQUENCE_NAMES
from asap.experiments.files.documents import read_text
from asap.stacks.deepspeed.trainer import RECOMPUTE, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH

_BASES = ("TrainingArguments", "SFTConfig")
_FIELDS = frozenset(
    (RECOMPUTE, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH, "bf16", "fp16", "optim", *SEQUENCE_NAMES)
)  # fmt: skip


def own_defaults(program: str, script: Path) -> dict[str, Any]:
    """Arguments that the program has other defaults for than the Trainer; none where it does not lie beside the script.

    Args:
        program: as the script names it.
        script: that starts it.
    """
    path = script.parent / program.removeprefix("./")
    if not program.endswith(".py") or "$" in program or not is_file(path):
        return {}
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(read_text(path))
    except (ConfigError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and _is_of_trainer(node))
    return {name: value for node in classes for name, value in _fields(node) if name in _FIELDS}


def note_on_own(defaults: Mapping[str, Any], program: str) -> tuple[str, ...]:
    """What was taken from the program; nothing where nothing was."""
    listed = ", ".join(f"{key}={plain(value, 40).lower()}" for key, value in defaults.items())
    return (f"not said, and taken as {plain(program, 40)} has it: {listed}",) if listed else ()


def _is_of_trainer(node: ast.ClassDef) -> bool:
    names = (base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases)
    return any(name.endswith(_BASES) for name in names)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    """Fields of a class with their literal defaults."""
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
            value = line.value
            if isinstance(value, ast.Call):
                value = next((word.value for word in value.keywords if word.arg == "default"), value)
            if isinstance(value, ast.Constant) and value.value is not None:
                yield line.target.id, value.value


_OF_TRAINER = frozenset(
    [
        "save_strategy",
        "eval_strategy",
        "evaluation_strategy",
        "logging_strategy",
        "save_total_limit",
        "overwrite_output_dir",
        "remove_unused_columns",
        "ddp_timeout",
        "ddp_find_unused_parameters",
        "dataloader_num_workers",
        "load_best_model_at_end",
        "torch_compile",
        "do_train",
        "tf32",
    ]
)
"""Arguments that programs without the Trainer do not have."""
_OF_TRL = frozenset(("packing", "dataset_text_field", "completion_only_loss", "assistant_only_loss", "use_peft"))
"""Of ``SFTConfig``, which recomputes unless told otherwise in some versions and not in others."""
_SAYS_RECOMPUTATION = re.compile(r"checkpointing$|grad\w{0,40}_(?:checkpoint|ckpt)|recompute")


def defaults_under(arguments: Mapping[str, Any], program: str, unsaid: Collection[str] = ()) -> Mapping[str, Any]:
    """No recomputation, where a command has arguments of the Trainer and none that says it.

    Args:
        arguments: by name.
        program: that takes them.
        unsaid: arguments whose value only a run can tell.
    """
    said = {*arguments, *unsaid}
    of_trainer = TRAINER_MICRO_BATCH in said and not said.isdisjoint(_OF_TRAINER)
    if not of_trainer or not said.isdisjoint(_OF_TRL) or "sft" in program.rpartition("/")[2].casefold():
        return {}
    return {} if any(_SAYS_RECOMPUTATION.search(key) for key in said) else {RECOMPUTE: False}


def note_on(defaults: Mapping[str, Any]) -> tuple[str, ...]:
    """What was taken for said; nothing where nothing was."""
    if not defaults:
        return ()
    return (f"{RECOMPUTE} is not said, and taken as off, as the Trainer has it: add {RECOMPUTE}=true if it is on",)
