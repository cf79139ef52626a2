"""The model compiled by PyTorch: norms, gates and residuals become one kernel each."""

from collections.abc import Mapping

from asap.levers.lever import Run, Trial
from asap.stacks.writing import is_of_primus

_EARLIER = "training.compile"
"""Until the autumn of 2025."""


def _settings(run: Run) -> Mapping[str, str]:
    off = run.stack == "torchtitan" and run.workload.compiled is False and not is_of_primus(run.settings)
    key = _EARLIER if _EARLIER in run.settings else "compile.enable"
    return {key: "true"} if off else {}


TRIAL = Trial(
    name="torch_compile",
    title="compiling the model (torch.compile)",
    changes="time: of elementwise operations; HBM: fewer of their tensors; numerics: none but the order of sums",
    reason="four decoders took 10 to 34 % less time with it",
    source="https://github.com/Lightning-AI/litgpt/blob/3cf6493c/extensions/thunder/README.md,"
    " https://github.com/pytorch/torchtune/blob/bd2a0fc7c/README.md,"
    " https://github.com/daddyofadoggy/blog/blob/db07f84/posts/torchtitan/3d.md, docs/optimize.md",
    settings=_settings,
    workload={"compiled": True, "compiled_loss": True},
)
