"""The output projection and the loss in one kernel, where what runs writes the logits of all tokens."""

import re
from collections.abc import Mapping

from asap.levers.fused_attention import has_kernels
from asap.levers.lever import Run, Trial
from asap.stacks.trainer.arguments import KEEP, SECTION, TRAINER_MICRO_BATCH

_MODELS = re.compile(
    r"llama|mi[sx]tral|ministral|gemma|qwen|phi-?3|olmo-?[23]|smollm3|glm-?4|gpt-?oss|nemotron|exaone-?4", re.IGNORECASE
)
"""Families for which Liger replaces the loss (``transformers/monkey_patch.py``)."""
_PLUGINS = "plugins"
_TARGET = "loss_fn._target_"
_OF_AUTOMODEL = {
    _TARGET: "nemo_automodel.components.loss.linear_ce.FusedLinearCrossEntropy",
    "model.output_hidden_states": "true",
}
"""Its recipe takes the loss from the hidden states, which the model has to return (``recipes/llm/train_ft.py``)."""


def _settings(run: Run) -> Mapping[str, str]:
    work = run.workload
    done = work.fused_linear_cross_entropy or work.loss_chunks or work.compiled_loss
    known = run.model is not None and _MODELS.search(run.model.name or "")
    if done or not known or not has_kernels(run.chip):
        return {}
    if _TARGET in run.settings:
        return _OF_AUTOMODEL
    if run.stack in ("deepspeed", "accelerate"):
        return _of_trainer(run.settings)
    return _of_axolotl(run.settings) if run.stack == "axolotl" else {}


def _of_trainer(settings: Mapping[str, object]) -> Mapping[str, str]:
    """Beside the Trainer's other arguments; LLaMA-Factory has a word of its own."""
    places = [before for before in ("", f"{SECTION}.") if f"{before}{TRAINER_MICRO_BATCH}" in settings]
    return {f"{before}{_word(settings, before)}": "true" for before in places}


def _word(settings: Mapping[str, object], before: str) -> str:
    return "enable_liger_kernel" if f"{before}{KEEP}" in settings else "use_liger_kernel"


def _of_axolotl(settings: Mapping[str, object]) -> Mapping[str, str]:
    """With the plugin that reads it, unless the file has a list of others, which a line would replace."""
    if any(key.startswith(_PLUGINS) for key in settings):
        return {}
    return {_PLUGINS: "[axolotl.integrations.liger.LigerPlugin]", "liger_fused_linear_cross_entropy": "true"}


TRIAL = Trial(
    name="fused_loss",
    title="fused linear cross-entropy",
    changes="time: little; HBM: logits and their gradients, of which a part exists at a time; numerics: order of sums",
    reason="logits of all tokens and their gradients are in HBM at once; a fused kernel takes them part by part",
    source="https://arxiv.org/abs/2410.10989",
    settings=_settings,
    workload={"fused_linear_cross_entropy": True},
    at_most="remove:compute",
)
