"""Megatron-LM's arguments as statements of a Python program of Megatron-Bridge: ``cfg.model.context_parallel_size = 2``
(``megatron/bridge/training/config.py``)."""

from collections.abc import Mapping

from asap.plans.megatron.sections import SECTIONS_OF_BRIDGE, VIRTUAL_SIZE, is_of_stages, literal, yaml_values

VARIABLE = "variable_of_program"
"""Among settings: what a program calls its configuration."""


def program_lines(arguments: Mapping[str, str | bool], variable: object) -> str:
    """Arguments that change, a statement each."""
    return "\n".join(f"{variable}.{_place(key)} = {literal(value)}" for key, value in yaml_values(arguments).items())


def _place(key: str) -> str:
    return f"{SECTIONS_OF_BRIDGE.get(key, 'model')}.{VIRTUAL_SIZE if is_of_stages(key) else key}"
