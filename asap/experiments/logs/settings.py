"""The settings that decide a step, under one name each, from blocks and statements of any stack."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt

from asap.core.numbers import digits, half_digit
from asap.core.text import plain
from asap.experiments.logs.formats import table
from asap.experiments.logs.reading import LogReading, SettingsBlock
from asap.experiments.logs.text import number


class LogSettings(BaseModel):
    """Settings in the words of this project; ``None`` where the log does not say. Batches are counts of sequences."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | None = None
    layers: PositiveInt | None = None
    hidden: PositiveInt | None = None
    ffn: PositiveInt | None = None
    heads: PositiveInt | None = None
    kv_heads: PositiveInt | None = None
    vocab: PositiveInt | None = None
    parameters: PositiveFloat | None = None
    trainable: PositiveFloat | None = None
    sequence: PositiveInt | None = None
    global_batch: PositiveInt | None = None
    micro_batch: PositiveFloat | None = None
    accumulation: PositiveInt | None = None
    devices: PositiveInt | None = None
    nodes: PositiveInt | None = None
    devices_per_node: PositiveInt | None = None
    slices: PositiveInt | None = None
    tensor: PositiveInt | None = None
    pipeline: PositiveInt | None = None
    context: PositiveInt | None = None
    expert: PositiveInt | None = None
    data: PositiveInt | None = None
    replicate: PositiveInt | None = None
    shard: PositiveInt | None = None
    zero: NonNegativeInt | Literal["fsdp"] | None = None
    recompute: Literal["none", "selective", "full"] | None = None
    precision: str | None = None
    adapter_rank: PositiveInt | None = None
    adapters: str | None = Field(default=None, description="what is trained in place of all parameters: lora, …")
    objective: str | None = Field(default=None, description="what steps do: language, generates, compares, …")

    @property
    def data_parallel(self) -> int | None:
        """Groups of devices that see different sequences, where the log says them or they follow from it."""
        if self.data:
            return self.data
        if self.devices and self.tensor and self.pipeline:
            product = self.tensor * self.pipeline * (self.context or 1)
            return self.devices // product if self.devices % product == 0 else None
        if self.global_batch and self.micro_batch and self.accumulation:
            groups, rest = divmod(self.global_batch, self.micro_batch * self.accumulation)
            return int(groups) if groups and not rest else None
        return None


_FIELDS = LogSettings.model_fields
_COUNTS = [name for name, one in _FIELDS.items() if one.annotation == _FIELDS["layers"].annotation]


def settings_of(reading: LogReading) -> LogSettings:
    """What blocks say, the stack's own settings before what prints beside them, then what single lines say."""
    found: dict[str, Any] = {}
    for block in sorted(reading.blocks, key=_precedence):
        found |= {name: value for name, value in _block_settings(block).items() if name in _fields_of(block)}
    said = _stated_settings(reading.statements)
    found |= {name: value for name, value in said.items() if found.get(name) is None or name in _RULING}
    hardware = reading.hardware
    for name in ("devices", "nodes", "devices_per_node"):
        if found.get(name) is None:
            found[name] = getattr(hardware, name)
    groups = found.get("data") or (found.get("shard") or 0) * (found.get("replicate") or 1)
    if found.get("devices") is None and groups and found.get("tensor") and found.get("pipeline"):
        found["devices"] = int(groups * found["tensor"] * found["pipeline"] * (found.get("context") or 1))
    found["global_batch"] = reading.global_batch_of_steps or found.get("global_batch")
    found["objective"] = _objective(reading)
    if found.get("adapters") == "none":
        found.pop("adapter_rank", None)
    _derive(found, reading)
    if found.get("global_batch") and str(found["global_batch"]) == reading.statements.get("microbatches"):
        found |= {"data": 1, "micro_batch": 1}
    return LogSettings.model_validate(found)


def said_differently(reading: LogReading) -> dict[str, list[Any]]:
    """Counts of which blocks and single lines of one run say more than one value, with these."""
    of_blocks = ({k: v for k, v in _block_settings(one).items() if k in _fields_of(one)} for one in reading.blocks)
    said = [_stated_settings(reading.statements), *of_blocks]
    if not any(block.values.get("rampup_batch_size") for block in reading.blocks):
        said.append({"global_batch": reading.global_batch_of_steps})
    values = {name: {one[name] for one in said if one.get(name) is not None} for name in _COUNTS if name != "vocab"}
    return {name: sorted(several) for name, several in values.items() if len(several) > 1}


def _objective(reading: LogReading) -> str | None:
    """What the steps do, by the words that the log has for it: the least usual of them."""
    known, named = table("settings")["objective"], table("settings")["objective_names"]
    words = [reading.statements.get("trainer", "")]
    for block in reading.blocks:
        words.append(_OF_CLASS.sub("", block.kind.partition(": ")[2]))
        said = [one for name in named["names"] for one in _matches(block.values, name)]
        texts = [str(text) for one in said for text in (one if isinstance(one, list) else [one])]
        words += [text.rpartition("For")[2] for text in texts]  # a class of Transformers says what it is for
        words += [word for name, word in named["true"].items() if look_up(block.values, name) in (True, "True")]
    called = {*reading.statements, *map(str.casefold, words)}
    return next((meaning for meaning, its in known.items() if not called.isdisjoint((meaning, *its))), None)


def _derive(found: dict[str, Any], reading: LogReading) -> None:
    """What follows from what is said: devices from two rates, MaxText's batch, the one axis of some programs."""
    rates = reading.measured
    if not found.get("devices") and (whole := rates.tokens_per_second) and (each := rates.tokens_per_second_per_device):
        devices = whole / each
        exact = devices < _FEW or float(f"{each:.3g}") != each
        found["devices"] = round(devices) if exact and abs(devices - round(devices)) < _WHOLE else None
    if not found.get("global_batch") and rates.samples_per_second and rates.step.median:
        each = int(found.get("micro_batch") or 1) * int(found.get("accumulation") or 1)
        found["global_batch"] = _count(rates.samples_per_second * rates.step.median, _WHOLE_BATCH, each)
        if found["global_batch"] and not found.get("sequence") and rates.tokens_per_second:
            tokens = rates.tokens_per_second / rates.samples_per_second
            found["sequence"] = _count(
                tokens, half_digit(rates.tokens_per_second) + half_digit(rates.samples_per_second)
            )
    if reading.stack == "maxtext" and found.get("micro_batch") and found.get("devices"):
        batch = found["micro_batch"] * found["devices"] * (found.get("accumulation") or 1)
        found["global_batch"] = found.get("global_batch") or (int(batch) if batch == int(batch) else None)
    if reading.stack in _DATA_PARALLEL and not found.get("tensor"):
        groups = LogSettings.model_validate(found).data_parallel if reading.stack == "olmo" else found.get("data")
        found["devices"] = found.get("devices") or groups
    groups, rest = divmod(found.get("devices") or 0, found.get("context") or 1)
    if reading.stack in _DATA_PARALLEL and groups and not (rest or found.get("tensor")):
        found |= {"data": groups, "tensor": 1, "pipeline": 1}
    parts = [found.get(name) or 0 for name in ("data", "micro_batch", "accumulation")]
    if all(parts) and not found.get("global_batch") and reading.stack != "maxtext":
        found["global_batch"] = int(math.prod(parts))
    if any("n_kv_heads" in block.values and block.values["n_kv_heads"] is None for block in reading.blocks):
        found["kv_heads"] = found.get("kv_heads") or found.get("heads")


def _count(about: float, share: float, each: int = 1) -> int | None:
    """The multiple of a count that a figure stands for which may be off by a share; ``None`` for none or several."""
    near = each * round(about / each)
    hidden = share * about
    return near if near and abs(about - near) <= hidden < each / 2 else None


_WHOLE_BATCH = 5e-4
"""Share by which samples of a step by two rates of four digits may be off."""
_DATA_PARALLEL = ("trainer", "llm-foundry", "torchtune", "litgpt", "nanochat", "nanogpt", "olmo")
"""Programs that spread the batch over all devices, and nothing else."""
_RANKS = "_ranks"
_WHOLE, _FEW = 0.02, 40
"""Rates of three digits tell fewer devices than these apart: each may be off by half a hundredth."""
_OF_DEEPSPEED = frozenset(("global_batch", "micro_batch", "accumulation", "zero", "precision"))
_OF_MODEL = frozenset(("model", "layers", "hidden", "ffn", "heads", "kv_heads", "vocab"))
_OF_OPTIONS = {"deepspeed": "zero", "group_query_attention": "kv_heads"}
"""Settings that are printed and mean nothing where their option is off."""
_OF_CLASS = re.compile(r"(?:Config|(?:Training)?Arguments)$")
_RULING = frozenset(("vocab", "parameters", "trainable"))
"""What a program says after it has built the model wins over what it was told."""


def _precedence(block: SettingsBlock) -> tuple[int, int]:
    """Later in this order wins: prints of a part, as of an engine or an optimizer, before the whole configuration."""
    parts = ("deepspeed", "json", "call")
    return next((rank for rank, kind in enumerate(parts) if block.kind.startswith(kind)), len(parts)), block.line


def _fields_of(block: SettingsBlock) -> frozenset[str]:
    """What a block decides: DeepSpeed's print its engine alone, a model's own configuration its shapes alone."""
    if block.kind.startswith("deepspeed") or ("zero_optimization" in block.values and "num_layers" not in block.values):
        return _OF_DEEPSPEED
    known = table("settings")["names"]
    of_run = any(name in block.values for name in (*known["micro_batch"], *known["global_batch"]))
    of_model = "model_type" in block.values and not of_run
    if of_model and block.kind != "file":
        return _OF_MODEL if "vocab_size" in block.values else frozenset()  # a part that reads no text has none
    # a model's own object has the longest sequence it can take, one of Hugging Face that of generating text
    generates = of_model or (block.kind.startswith("call") and "n_layers" in block.values)
    return frozenset(LogSettings.model_fields) - ({"sequence"} if generates else set())


def _block_settings(block: SettingsBlock) -> dict[str, Any]:
    known = table("settings")
    found: dict[str, Any] = {}
    for field, names in known["names"].items():
        of_generation = "num_beams" in block.values and "num_train_epochs" not in block.values
        for name in (name for name in names if name != "max_length" or not of_generation):
            value = look_up(block.values, name)
            if (read := _value(field, value)) is not None:
                found[field] = read
                break
    if "per_device_train_batch_size" in block.values and found.get("global_batch") == found.get("micro_batch"):
        found.pop("global_batch", None)  # the Trainer's train_batch_size is that of a process
    if (tokens := _whole(look_up(block.values, "rank_microbatch_size"), least=1)) is not None:
        found |= _token_settings(tokens, found.get("global_batch"), found.get("sequence"))
    for option, field in _OF_OPTIONS.items():
        if block.values.get(option) is False:
            found.pop(field, None)
    for field in ("recompute", "precision", "adapters"):
        for name, meanings in known[field].items():
            words = (str(said).strip().casefold() for said in _matches(block.values, name))
            meaning = next(map(meanings.get, words), None)
            if meaning is not None:
                found[field] = meaning
                break
    return found


def _token_settings(micro: int, batch: int | None, sequence: int | None) -> dict[str, Any]:
    """Batches in sequences of a program that counts tokens (OLMo-core); unknown where the sequence is."""
    if not sequence or micro % sequence or (batch or 0) % sequence:
        return {"micro_batch": None, "global_batch": None}
    return {"micro_batch": micro // sequence, "global_batch": batch and batch // sequence}


def _stated_settings(said: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    known = table("settings")
    for name, text in said.items():
        axis = known["mesh"].get(name.removeprefix("mesh.")) if name.startswith("mesh.") else name
        if name.endswith(_RANKS) and (axis := name.removesuffix(_RANKS)) in _COUNTS:
            found[axis] = len(text.split())
        elif axis in _COUNTS and text.isdigit() and int(text):
            found[axis] = int(text)
        elif axis in ("parameters", "trainable", "micro_batch") and (axis != "trainable" or "adapted" not in said):
            found[axis] = number(text) or None
        elif axis == "adapted":
            found["trainable"] = number(text) or None
        elif axis in ("model", "recompute", "precision", "adapters"):
            found[axis] = known["benchmarks"].get(text, text)
    if "parameters_billion" in said:
        found["parameters"] = float(said["parameters_billion"]) * 1e9
    if (frozen := number(said.get("frozen", ""))) and (trained := found.get("trainable")):
        found["parameters"] = trained + frozen
    if said.get("zero"):
        found["zero"] = "fsdp" if said["zero"] == "fsdp" else int(said["zero"])
    if (dtype := said.get("compute_dtype", "").casefold()) in known["dtypes"]:
        found["precision"] = known["dtypes"][dtype]
    if said.get("samples_so_far") and int(said.get("batches_so_far", "0")):
        batch, rest = divmod(int(said["samples_so_far"]), int(said["batches_so_far"]))
        found["global_batch"] = batch if batch and not rest else None
    at_once = found.get("micro_batch", 0) * found.get("sequence", 0)
    for field, tokens, each in (
        ("global_batch", "batch_tokens", found.get("sequence")),
        ("sequence", "batch_tokens", found.get("global_batch")),
        ("sequence", "tokens_so_far", number(said.get("samples_so_far", ""))),
        ("devices", "tokens_at_once", at_once),
    ):
        if each and (whole := number(said.get(tokens, ""))) and whole % each == 0:
            found.setdefault(field, int(whole / each))
    if any(name.startswith("mesh.") for name in said):
        found |= {axis: found.get(axis, 1) for axis in ("tensor", "pipeline", "context")}
    return found


def _value(field: str, value: Any) -> Any:
    if isinstance(value, dict | list) or value is None or isinstance(value, bool):
        return None
    if field == "model":
        return plain(str(value), 200) if str(value).strip() not in ("", "default") else None
    if field == "micro_batch":
        size = number(str(value))
        return size if size and 0 < size < 1e9 else None
    return _whole(value, least=0 if field == "zero" else 1)


def _whole(value: Any, least: int) -> int | None:
    found = digits(str(value))
    return found if found is not None and least <= found < 10**12 else None


def look_up(values: Mapping[str, Any], name: str) -> Any:
    """The first value of a setting, at the top level or in a section; ``None`` where there is none."""
    return next(_matches(values, name), None)


def _matches(values: Mapping[str, Any], name: str) -> Iterator[Any]:
    section, _, key = name.rpartition(".")
    if not section and key in values:
        yield values[key]
    for parent, inner in values.items():
        if isinstance(inner, dict):
            if key in inner and (not section or parent == section):
                yield inner[key]
            yield from _matches(inner, name)
        elif section and parent == name:
            yield inner
