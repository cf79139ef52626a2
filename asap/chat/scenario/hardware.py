"""A run on other hardware, with its plan stretched over it."""

import math

from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.quantities.hardware.hardware_names import says_how_many
from asap.chat.understanding.references.partial_plan import data_axis
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_rate
from asap.experiments import Experiment
from asap.experiments.hardware import refer_to_hardware
from asap.hardware import Slice, default_topology, read_network
from asap.hardware.names import HardwareName
from asap.plans import Mesh, Plan
from asap.plans.axes import Axis
from asap.study.study import Study

_OWN_DEVICES: tuple[Axis, ...] = ("stage", "expert", "seq", "model")


def with_hardware(
    study: Study, experiment: Experiment, change: Change, plan: Plan, changes: list[str], notes: list[str]
) -> tuple[Experiment, Plan]:
    """The record on other chips, and the plan there; ``changes`` and ``notes`` get what is said about it.

    Raises:
        InsufficientEvidenceError: no hardware is on record, or the plan cannot be stretched to so many chips.
        NotFoundError, ConfigError: there is no such hardware.
    """
    chips, slices = change.get("chips"), change.get("slices")
    if change.hardware is None and chips is None and slices is None:
        return experiment, plan
    if study.slice is None:
        raise InsufficientEvidenceError("the hardware is not on record", where=experiment.id, hint="--hardware NAME")
    now = study.slice
    name = change.hardware or _machine(experiment) or now.chip.name
    sized = says_how_many(name)
    count = None if sized else (chips.of(now.devices) if chips else now.devices)
    if slices is not None and change.hardware is None and chips is None:
        name, sized, count = experiment.hardware.name or now.chip.name, True, None
    number = slices.of(now.slices) if slices else None
    topology = now.topology if slices is not None and change.hardware is None and chips is None else None
    if change.hardware is None and count is not None and slices is None and (more := _slices_with(now, count)):
        name, sized, topology, number = experiment.hardware.name or now.chip.name, True, now.topology, more
    reference, said = refer_to_hardware(name, topology, number, None if sized else count)
    notes += said
    if reference.chip == now.chip.name:
        reference = reference.model_copy(update={"network": experiment.hardware.network})
    devices = reference.devices or count or now.devices
    shape = f" in {number} slices" if number and number > 1 else ""
    new, old = ("", "") if reference.chip == now.chip.name else (f"{reference.chip} ", f" {now.chip.name} chips")
    changes.append(f"{devices} {new}chips{shape} instead of {now.devices}{old}")
    shrunk = _narrowed(plan, devices // (number or 1))
    if shrunk != plan:
        notes.append(f"{plan} does not go into {devices} chips: {shrunk} takes its place")
    stretched = study.with_micro_batch(_stretched(shrunk, now.devices, devices, number or 1, data_axis(study)))
    own = experiment.plan and _narrowed(experiment.plan, devices // (number or 1))
    own = _stretched(own, now.devices, devices, number or 1, data_axis(study)) if own else stretched
    own = study.with_micro_batch(own)
    return experiment.model_copy(update={"hardware": reference, "plan": own}), stretched


def with_stated_network(study: Study, experiment: Experiment, change: Change, changes: list[str]) -> Experiment:
    """The record on another network between nodes; ``changes`` gets what is said about it.

    Raises:
        InsufficientEvidenceError: no hardware is on record.
        ConfigError: the rate does not say of what.
    """
    if change.network is None and change.network_factor is None:
        return experiment
    if study.slice is None:
        raise InsufficientEvidenceError("the hardware is not on record", where=experiment.id, hint="--hardware NAME")
    chip = study.slice.chip
    present, factor = chip.network.bandwidth, change.network_factor
    rate = present * factor if factor else read_network(change.network or "", chip)
    now = format_rate(present, "B/s") + ("" if chip.network.stated else ", as its maker has it")
    changes.append(f"{format_rate(rate, 'B/s')} a device between nodes (on record: {now})")
    hardware = experiment.hardware.model_copy(update={"network": rate})
    return experiment.model_copy(update={"hardware": hardware})


def _machine(experiment: Experiment) -> str | None:
    """The machine of a cloud that the record names."""
    return HardwareName.parse(experiment.hardware.name).instance if experiment.hardware.name else None


def _slices_with(now: Slice, devices: int) -> int | None:
    """How many slices like those of now have so many devices, where no single slice has."""
    chips = devices * now.chips // now.devices
    if now.chip.torus is None or default_topology(now.chip, chips) is not None or chips % now.chips_per_slice:
        return None
    return chips // now.chips_per_slice


def _narrowed(plan: Plan, devices: int) -> Plan:
    """A plan whose axes beside data parallelism go into so many devices of a slice: the widest of them is halved."""
    degrees = {axis: getattr(plan.ici, axis) for axis in _OWN_DEVICES}
    while devices % math.prod(degrees.values()):
        widest = max(degrees, key=lambda axis: degrees[axis])
        if degrees[widest] % 2:
            return plan
        degrees[widest] //= 2
    return plan.with_ici(**degrees)


def _stretched(plan: Plan, before: int, after: int, slices: int, data: Axis) -> Plan:
    """A plan on another number of devices: slices replicate it, else data parallelism takes the difference."""
    if slices > 1 and plan.dcn.devices == 1 and after == before * slices:
        return plan.model_copy(update={"dcn": Mesh(replica=slices)})
    per_slice = after // slices
    replicated = plan.ici.data == 1 and (plan.ici.replica > 1 or data == "replica")
    rest = plan.ici.devices // (plan.ici.replica if replicated else plan.ici.data)
    if per_slice % rest:
        raise InsufficientEvidenceError(
            f"{plan} cannot be stretched to {after} chips", where="plan", hint="name the plan to run there"
        )
    dcn = Mesh(replica=slices) if slices > 1 else Mesh()
    return plan.with_ici(**{"replica" if replicated else "data": per_slice // rest}).model_copy(update={"dcn": dcn})
