"""The model compiled by PyTorch: norms, gates and residuals become one kernel each."""

from collections.abc import Mapping

from asap.levers.lever import Run, Trial
from asap.stacks.writing import is_of_primus

_ENABLE, _EARLIER = "compile.enable", "training.compile"
"""The latter until the autumn of 2025."""


def _settings(run: Run) -> Mapping[str, str]:
    if run.stack != "torchtitan" or run.workload.compiled is not False or is_of_primus(run.settings):
        return {}
    if str(run.settings.get(_ENABLE)).lower() == "true":
        return {"compile.components": '["model", "loss"]'}
    return {_EARLIER if _EARLIER in run.settings else _ENABLE: "true"}


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
