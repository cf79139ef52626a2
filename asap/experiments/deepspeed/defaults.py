"""What programs under DeepSpeed and the Trainer take where they are told nothing."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from asap.stacks.trainer.arguments import RECOMPUTE, TRAINER_MICRO_BATCH

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
