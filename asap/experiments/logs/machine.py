"""The hardware, the mesh and the model as a log names them: tools, launchers, and the settings that programs print."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asap.core.errors import AsapError, ConfigError
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document
from asap.experiments.huggingface_model import read_huggingface
from asap.experiments.logs.formats import DeviceForm, table
from asap.experiments.logs.reading import LogHardware, LogReading, SettingsBlock
from asap.experiments.logs.scan import Scan
from asap.experiments.logs.settings import LogSettings
from asap.hardware import Slice, resolve_hardware
from asap.hardware.catalogue import chip_of_device
from asap.models import Architecture, find_architecture
from asap.plans import Mesh, Plan, Remat
from asap.plans.axes import AXES
from asap.stacks.maxtext.mesh import FILLED_BY_DEFAULT, axis_key
from asap.stacks.torchtitan.model import printed_model, read_modules

_KINDS_OF_NODE = re.compile(r"-(?:podslice|slice|device)$")
"""What Kubernetes Engine adds to it: ``tpu-v5-lite-podslice``."""
_COUNT = re.compile(r"(?:^|x)(\d{1,4})(?=x|[A-Z])")
_CHIP = re.compile(r"[A-Z]{1,3}\d")
_OF_CHIPS = re.compile(r"(\d) x (?:NVIDIA )?(?=[A-Z]{1,3}\d)")
"""Counts in the name of a submission's platform, and a chip that stands behind them."""
_OF_NODE = 8  # GPUs of nearly every node: ``8xA100`` are its GPUs, where ``4xMI300X`` are nodes
_OF_NVIDIA = re.compile(r"\b[DH]GX [ABH]\d")  # machines that have eight GPUs; those of Grace have four
_FOLDED = ("ep", "etp", "dp_mod_ep", "dp_shard_mod_ep", "dp_shard_in_ep", "batch", "loss", "efsdp")
"""Axes of torchtitan that lie over others of the mesh."""


def hardware_of(found: Scan, said: Mapping[str, str], memory_bytes: float | None = None) -> LogHardware:
    """Chip, devices and nodes, where the log has them; the last line of a kind counts. ``memory_bytes`` are a device's,
    by what else the log says: they tell chips of one name apart."""
    fields: dict[str, str] = {}
    slots: set[tuple[str, str]] = set()
    rows: set[str] = set()
    for one in found.devices:
        matches = list(one.form.pattern.finditer(one.text)) if isinstance(one.form, DeviceForm) else []
        new = {name: text for match in reversed(matches) for name, text in match.groupdict().items() if text}
        if "id" in new and "]" in one.text[matches[-1].end() :]:
            slots = {(match["process"], match["id"]) for match in matches}
        rows |= {match["row"] for match in matches if "row" in new}
        if "chip" in new and chip_of_device(fields.get("chip", "")) and not chip_of_device(new["chip"]):
            new.pop("chip")  # of another device: a name that is known is kept
        fields |= new
    if "platform" in fields:
        fields = _platform_settings(fields["platform"]) | fields
    for name in ("devices", "nodes", "devices_per_node"):
        fields |= {name: said[name]} if said.get(name, "").isdigit() else {}
    named = fields.get("chip")
    memory = float(fields.get("memory_mib", 0)) / 1024 or float(fields.get("memory_gib", (memory_bytes or 0) / 2**30))
    chip = chip_of_device(_KINDS_OF_NODE.sub("", named), memory or None) if named else None
    nodes, each, slices = (int(fields.get(name, 0)) for name in ("nodes", "devices_per_node", "slices"))
    listed = len(slots) if len({process for process, _ in slots}) > 1 else 0  # of one process: of its host alone
    mesh = {key: int(size) for key, size in said.items() if key.startswith("mesh.") and size.isdigit()}
    in_mesh = math.prod(degree for key, degree in mesh.items() if key.removeprefix("mesh.") not in _FOLDED)
    devices = int(fields.get("devices", 0)) or listed or nodes * each or (in_mesh if mesh else None)
    by_type = _slice(fields.get("slice"), None, slices)
    by_topology = _slice(by_type.chip.name if by_type else chip, _topology(fields), slices)
    if resolved := by_topology or by_type:
        named, chip, devices = named or fields.get("slice"), resolved.chip.name, devices or resolved.devices
    return LogHardware(
        chip=chip,
        named=named.strip() if named else None,
        devices=devices,
        nodes=nodes or None,
        devices_per_node=each or None,
        slices=slices or None,
        listed=len(rows) * (nodes or 1) if rows == {*map(str, range(len(rows)))} and rows else None,
        network=said.get("network", "").strip() or None,
    )


def _platform_settings(name: str) -> dict[str, str]:
    """The chip of ``1xXE9680Lx8B200-SXM-180GB``, and how many; ``2xMI325X`` counts nodes, ``8xMI325X`` is one."""
    name = _OF_CHIPS.sub(r"\1x", name)
    counts = list(_COUNT.finditer(name))
    rest = (name[counts[-1].end() :] if counts else name).removeprefix("x").replace("_", " ")
    devices, chip = math.prod(int(count[1]) for count in counts), {"chip": rest}
    if _CHIP.match(rest) and counts and (len(counts) > 1 or counts[0].start() or devices == _OF_NODE):
        return chip | {"devices": str(devices)}
    of_node = {"devices_per_node": str(_OF_NODE)} if _OF_NVIDIA.search(rest) else {}
    return chip | ({"nodes": counts[0][1]} | of_node if counts and counts[0].start() == 0 else {})


def _topology(fields: Mapping[str, str]) -> str | None:
    """Chips along each axis of a slice: as they are named, else those of a host times the hosts."""
    if "host" not in fields or "hosts" not in fields:
        return fields.get("topology")
    host, hosts = (map(int, fields[name].split(",")) for name in ("host", "hosts"))
    return "x".join(str(chips * times) for chips, times in zip(host, hosts, strict=False))


def _slice(name: str | None, topology: str | None, slices: int) -> Slice | None:
    """The slice of TPUs that an accelerator type, or a chip and a topology mean, as many times as there are."""
    if not name or (topology is None and "-" not in name):
        return None
    for axes in (topology, topology.removesuffix("x1")) if topology else (None,):
        try:
            return resolve_hardware(name, axes, slices or 1).slice
        except AsapError:
            continue
    return None


_HUGGING_FACE = ("model_type", "num_hidden_layers")
_TORCHTITAN = ("dim", "n_layers", "n_heads")


def read_shapes(reading: LogReading, experiment: Experiment) -> Experiment:
    """``experiment`` with the model that a block of the log describes, where none is said."""
    if experiment.model is not None:
        return experiment
    for block in reading.blocks:
        if all(key in block.values for key in _HUGGING_FACE):
            try:
                return read_huggingface(Document(Path(reading.file), block.values, {}), experiment)
            except ConfigError:
                continue
        values = read_modules(block.values)
        if not all(key in values for key in _TORCHTITAN):
            continue
        name = reading.statements.get("model", "")
        of_experts = "moe_args" in values and values.get("moe_enabled") is not False
        model = find_architecture(name.replace(" ", "-")) if of_experts else printed_model(values, name)
        if model is not None:
            return experiment.knowing(model=model, provenance={"model": f"{reading.file}:{block.line}"})
    return experiment


def model_of_shapes(stack: str | None, said: LogSettings) -> Architecture | None:
    """The model of a program whose models differ in sizes alone, by the sizes that it prints; else ``None``."""
    own = table("settings")["shapes"].get(stack or "")
    if not own or not (said.layers and said.hidden and said.heads and said.vocab):
        return None
    sizes = {"layers": said.layers, "d_model": said.hidden, "heads": said.heads, "vocab": said.vocab}
    sizes |= {"kv_heads": said.kv_heads or said.heads, "head_dim": said.hidden // said.heads}
    switches = {name: value for name, value in own.items() if name != "ffn"}
    return Architecture.model_validate({"name": stack, "d_ff": own["ffn"] * said.hidden} | sizes | switches)


def degrees_of_shape(shape: str, blocks: Sequence[SettingsBlock]) -> dict[str, str]:
    """MaxText's mesh where no setting says it: by the names of its axes, else FSDP where one of its axes has all."""
    settings = {key: value for block in blocks if block.kind == "maxtext" for key, value in block.values.items()}
    sizes = shape.replace(",", " ").split()
    if not sizes or any(key.startswith("ici_") for key in settings):
        return {}
    names = re.findall(r"\w+", str(settings.get("mesh_axes", "")))
    split = [place for place, size in enumerate(sizes) if size != "1"]
    if len(names) == len(sizes):
        named = {names[place]: sizes[place] for place in split}
        known = named.keys() <= set(table("settings")["mesh"]) - {"expert"}
        return {f"mesh.{name}": degree for name, degree in named.items()} if known else {}
    places = table("settings")["mesh_shape"].get(str(len(sizes)), ())
    return {"mesh.fsdp": sizes[split[0]], "zero": "fsdp"} if len(split) == 1 and split[0] in places else {}


def mesh_of_maxtext(reading: LogReading) -> dict[str, Any]:
    """Degrees that only the line of the mesh states, under the names of MaxText's settings."""
    named = {key.partition("mesh.")[2]: size for key, size in reading.statements.items() if key.startswith("mesh.")}
    degrees = {axis_key("ici", "pipeline" if axis == "stage" else axis): int(size) for axis, size in named.items()}
    return {axis_key("ici", FILLED_BY_DEFAULT["ici"]): 1} | degrees if degrees else {}


def is_other_mesh(experiment: Experiment, shape: str) -> bool:
    """Whether the plan, as MaxText's defaults make it, is not the mesh that the log prints without names."""
    plan = experiment.plan
    sizes = sorted(int(size) for size in shape.replace(",", " ").split() if size != "1")
    return plan is not None and sizes != sorted(degree for axis in AXES if (degree := plan.degree(axis)) > 1)


_REMAT = {"none": Remat.NONE, "full": Remat.FULL}


def plan_of(settings: LogSettings) -> Plan | None:
    """The mesh, where devices, data parallelism and its sharding are stated."""
    groups = settings.data_parallel
    alone = groups is not None and groups == settings.devices and not settings.tensor
    if not groups or settings.zero is None or not (alone or (settings.tensor and settings.pipeline)):
        return None
    sharded = settings.zero in ("fsdp", 3)
    replicas = settings.replicate or 1
    mesh = Mesh(
        replica=replicas if sharded else groups,
        data=groups // replicas if sharded else 1,
        seq=settings.context or 1,
        model=settings.tensor or 1,
        stage=settings.pipeline or 1,
    )
    micro, batch = settings.micro_batch, settings.global_batch
    microbatches = settings.accumulation or (round(batch / micro / groups) if micro and batch else None)
    return Plan(ici=mesh, microbatches=microbatches or None, remat=_REMAT.get(settings.recompute or ""))


def as_megatron(settings: LogSettings, block: SettingsBlock) -> dict[str, Any]:
    """Arguments under the names of today's Megatron-LM, with what DeepSpeed prints of its own."""
    renamed = table("renamed")["megatron"]
    values = {key: value for key, value in block.values.items() if key not in renamed}
    values |= {new: block.values[old] for old, new in renamed.items() if old in block.values and new not in values}
    filled = _renamed(settings, "megatron_settings")
    if not values.get("deepspeed"):
        filled.pop("zero_stage", None)
    if filled.get("padded_vocab_size") == block.values.get("vocab_size"):
        filled.pop("padded_vocab_size", None)  # no line says how it is padded: the reader knows
    return values | {key: value for key, value in filled.items() if value and values.get(key) in (None, 0)}


def as_torchtitan(reading: LogReading, settings: LogSettings) -> dict[str, Any]:
    """The job configuration that torchtitan's own lines state; empty where they do not state the mesh."""
    if settings.model is None or not any(name.startswith("mesh.") for name in reading.statements):
        return {}
    name, _, flavor = settings.model.partition(" ")
    return {
        "model": {"name": name, "flavor": flavor},
        "training": _renamed(settings, "torchtitan_training"),
        "parallelism": _renamed(settings, "torchtitan_parallelism"),
        "activation_checkpoint": {"mode": settings.recompute or "none"},
        "compile": {"enable": "compiled" in reading.statements},
    }


def _renamed(settings: LogSettings, program: str) -> dict[str, Any]:
    """Settings that are known, under the names that a program has for them."""
    known = ((name, getattr(settings, field)) for name, field in table("renamed")[program].items())
    return {name: int(value) if isinstance(value, float) else value for name, value in known if value}
