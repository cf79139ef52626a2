"""Plans that torchtitan refuses beside what is set."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Plan
from asap.plans.torchtitan.python_lines import PYTHON
from asap.plans.torchtitan.token_batches import TOKENS

_BACKEND, _FLAVOR = "parallelism.spmd_backend", "model.flavor"


def check(plan: Plan, current: Mapping[str, object]) -> None:
    """Check a plan beside the settings as they are.

    Raises:
        PlanError: replicas without FSDP beside tensor parallelism or stages, which ``parallelize_llama`` and its like
            refused until March 2026; or context parallelism by DTensor, which is gone since August.
    """
    sharded = plan.degree("data") * plan.degree("expert") * plan.degree("seq")
    others = plan.degree("model") * plan.degree("stage")
    if _is_of_2025(current) and plan.degree("replica") > 1 == sharded and others > 1:
        reason = "torchtitan until March 2026 has replicas beside tensor parallelism or stages with FSDP only"
        raise PlanError(reason, hint="shard over 2 devices or more")
    if plan.degree("seq") > 1 and current.get(_BACKEND) == "partial_dtensor":
        raise PlanError("torchtitan's context parallelism needs another backend", hint=f'{_BACKEND} = "spmd_types"')


def _is_of_2025(current: Mapping[str, object]) -> bool:
    """Whether a configuration is TOML, which names its model and which torchtitan read until February 2026."""
    return _FLAVOR in current and not {PYTHON, TOKENS} & current.keys()
