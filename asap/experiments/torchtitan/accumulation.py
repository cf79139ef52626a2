"""Gradients that a fork accumulates over several batches before an update, as torchtitan's own global batch says it."""

import re

from asap.core.text import plain
from asap.experiments.settings.stack_settings import StackSettings
from asap.plans.plan import Plan
from asap.stacks.torchtitan import settings as titan

_STEPS = re.compile(r"training\.(?:gradient|grad)?_?accum(?:ulation)?(?:_steps)?", re.ASCII)


def with_global_batch(settings: StackSettings, plan: Plan | None) -> tuple[StackSettings, tuple[str, ...]]:
    """The settings with the batch of all steps that a fork accumulates, and a note on them.

    Args:
        settings: of a run.
        plan: on its devices; without one nothing is added.
    """
    key = next((key for key in settings if _STEPS.fullmatch(key)), None)
    steps = settings.count(key) if key else None
    if plan is None or key is None or steps in (None, 1) or str(settings.get(titan.GLOBAL_BATCH, -1)) != "-1":
        return settings, ()
    batch = steps * titan.global_batch_of(settings, plan.batch_shards)
    note = f"{plain(key, 60)}={steps}, which no torchtitan has, is read by its name: {steps} microbatches to an update"
    return settings.overridden({titan.GLOBAL_BATCH: batch}), (note,)
