"""Plans that are named in part: what is not named stays as it runs; data parallelism takes the devices left."""

import re
from contextlib import suppress
from functools import cache

from asap.core.errors import PlanError
from asap.plans import AXES, Plan
from asap.plans.degrees import data_axis, over
from asap.plans.plan import SETTINGS, Mesh
from asap.stacks.registry import specs

ZERO = re.compile(r"(?:--)?\bzero[-_ ]?(?:optimization)?[._ -]?(?:stage)?[-= ]{0,3}(?P<stage>[0-3])\b", re.IGNORECASE)
"""A stage of ZeRO as a plan: 3 shards what data parallelism replicates, the others replicate it."""
_MICRO_BATCH = r"(?<!\S)(?:--)?(?:\w+\.)*(?:mbs|micro_batch|{})(?:\s*[=:]\s*|\s+)0*(\d{{1,9}})(?!\S)"


@cache
def _micro_batch() -> re.Pattern[str]:
    """A micro-batch and its size, under the name of any stack that counts sequences, with either dash; not under what
    another stack calls the whole batch, nor ``batch_size``, which may be either."""
    counting = [one.batch for one in specs().values() if one.batch.unit == "sequences" and one.kin != "jax"]
    whole = {key.rpartition(".")[2] for one in counting if one.whole for key in one.whole.keys}
    names = {key.rpartition(".")[2] for one in counting for key in one.micro.keys} - whole - {"batch_size"}
    return re.compile(_MICRO_BATCH.format("|".join(sorted(names, reverse=True))).replace("_", "[-_]?"), re.IGNORECASE)


def without_micro_batch(text: str) -> tuple[str, int | None]:
    """The text of a plan without the size of its micro-batch, and that size; a plan itself counts microbatches."""
    found = _micro_batch().search(text)
    return (text, None) if found is None else (_micro_batch().sub("", text).strip(), int(found[1]))


def of_micro_batch(plan: Plan, size: int, batch: int | None) -> Plan:
    """The plan with as many microbatches as make micro-batches of that size.

    Raises:
        PlanError: the batch is not known, or does not divide so.
    """
    if batch is None:
        raise PlanError(
            "how many microbatches that makes is open: the batch is not on record", where=f"micro_batch={size}"
        )
    count, rest = divmod(batch, plan.batch_shards * max(size, 1))
    if rest or not count or not size:
        groups = f"{plan.batch_shards} data-parallel groups x micro-batches of {size}"
        raise PlanError(f"{batch} sequences do not divide into {groups}", where=f"micro_batch={size}")
    return plan.model_copy(update={"microbatches": count})


def in_full(text: str, base: Plan | None, now: Plan | None, *, changes: bool) -> str:
    """The text form of a plan that is named in part.

    Args:
        text: its axes and settings.
        base: what the settings change, and whose devices the axes are laid over; the text is whole without one.
        now: the plan that runs, by which the text form is read.
        changes: whether what the text leaves out is as in ``base``, rather than as in ``now``.

    Raises:
        PlanError: it is malformed.
    """
    if base is None:
        return text
    if stage := ZERO.fullmatch(text.strip()):
        groups = base.ici.replica * base.ici.data
        sharded = stage["stage"] == "3"
        return base.with_ici(data=groups if sharded else 1, replica=1 if sharded else groups).beside(now)
    said = Plan.parse(text)
    settings = {field: getattr(said, field) for field in SETTINGS if field in said.model_fields_set}
    if not said.ici.model_fields_set and not said.dcn.model_fields_set:
        return base.model_copy(update=settings).beside(now)
    if said.devices != base.devices and said.ici.data == 1 and said.dcn == Mesh():
        named = said.ici.model_fields_set
        rest = "data" if "replica" in named else "replica" if "data" in named else data_axis(base)
        unnamed = [axis for axis in AXES if axis not in (*named, rest)]
        for kept in ({axis: getattr(base.ici, axis) for axis in unnamed}, {}):
            with suppress(PlanError):
                laid = over(said.with_ici(**kept), base.ici.devices, rest)
                return laid.model_copy(update={"dcn": base.dcn, **settings}).beside(None)
        return text
    return said.completed_by(base).beside(None) if changes else text
