"""Megatron-LM's own YAML, which ``--yaml-cfg`` names and beside which no argument counts
(``megatron/training/yaml_arguments.py``)."""

from collections.abc import Iterable, Mapping
from typing import Any

from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document
from asap.experiments.megatron.names import CORE
from asap.experiments.megatron.reader import read_megatron
from asap.stacks.megatron.releases import YAML_FILE
from asap.stacks.stack_settings import StackSettings

_MODEL, _PARALLEL = "language_model", "model_parallel"
_RENAMED = {"num_moe_experts": "num_experts", "fp8": "fp8_format"}
_DERIVED = "virtual_pipeline_model_parallel_size"
"""Megatron-LM works it out of the layers of a virtual stage, whatever the file says."""


def is_megatron_yaml(values: Mapping[str, Any]) -> bool:
    """Whether a mapping has the two sections of such a file."""
    return isinstance(values.get(_MODEL), dict) and isinstance(values.get(_PARALLEL), dict)


def read_megatron_yaml(document: Document, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what the file says; raises like :func:`read_megatron`."""
    model, parallel = document.values[_MODEL], document.values[_PARALLEL]
    said: dict[str, Any] = {str(key): value for key, value in document.values.items() if not isinstance(value, dict)}
    said |= {_RENAMED.get(key, str(key)): value for key, value in {**model, **parallel}.items()}
    said |= {
        "swiglu": model.get("activation_func") == "swiglu" or model.get("gated_linear_unit") is True,
        "group_query_attention": model.get("num_query_groups") is not None,
        _DERIVED: None,
        YAML_FILE: document.path.name,
    }
    return read_megatron(StackSettings(said, str(document.path), document.lines), overrides, experiment, CORE)
