"""The model's shapes where a program prints the model itself: torchtitan's arguments, Hugging Face's configuration."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from asap.core.errors import ConfigError
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document
from asap.experiments.huggingface.reader import read_huggingface
from asap.experiments.logs.reading import LogReading
from asap.models import Architecture, find_architecture

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
        if all(key in block.values for key in _TORCHTITAN) and (model := _torchtitan(block.values, reading)):
            source = f"{reading.file}:{block.line}"
            provenance = experiment.provenance | {"model": source}
            return experiment.model_copy(update={"model": model, "provenance": provenance})
    return experiment


def _torchtitan(values: Mapping[str, Any], reading: LogReading) -> Architecture | None:
    """``TransformerModelArgs`` of Llama; of another family the catalogue's model with the shapes that are printed.

    The width of the MLP is that of torchtitan's ``FeedForward``: two thirds of four times the model's, times
    ``ffn_dim_multiplier``, rounded up to ``multiple_of``.
    """
    name = reading.statements.get("model", "")
    width, heads = values["dim"], values["n_heads"]
    of_experts = "moe_args" in values and values.get("moe_enabled") is not False
    if not (isinstance(width, int) and isinstance(heads, int)) or of_experts:
        return find_architecture(name.replace(" ", "-"))
    hidden = values.get("hidden_dim")
    multiple = values.get("multiple_of")
    if hidden is None and isinstance(multiple, int) and multiple > 0:
        inner = int(int(8 * width / 3) * (values.get("ffn_dim_multiplier") or 1))
        hidden = multiple * math.ceil(inner / multiple)
    fields = {
        "name": name or None,
        "layers": values["n_layers"],
        "d_model": width,
        "heads": heads,
        "kv_heads": values.get("n_kv_heads") or heads,
        "head_dim": values.get("head_dim") or width // heads,
        "d_ff": hidden,
        "vocab": values.get("vocab_size") if (values.get("vocab_size") or -1) > 0 else None,
        "tied_embeddings": values.get("enable_weight_tying") is True,
        "qk_norm": values.get("qk_norm") is True,
    }
    try:
        return Architecture.model_validate(fields)
    except ValidationError:
        return None
