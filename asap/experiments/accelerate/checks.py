"""Values of Accelerate's configuration that are of the wrong kind (huggingface/accelerate,
``commands/config/config_args.py``, ``utils/dataclasses.py``)."""

from asap.experiments.settings.stack_settings import StackSettings
from asap.experiments.shell import has_substitution
from asap.stacks.accelerate import settings as accelerate

_SIZES = (accelerate.SHARD, accelerate.REPLICATE, accelerate.TENSOR, accelerate.CONTEXT, "sp_size")
_SWITCHES = ("offload_params", "activation_checkpointing", "cpu_ram_efficient_loading", "use_orig_params")
_PRECISIONS = ("no", "fp16", "bf16", "fp8")
_VERSIONS = ("1", "2")
_EMPTY = ("", "none", "null")


def check_values(settings: StackSettings) -> None:
    """Raise ConfigError at the first value of the wrong kind; empty ones, and those that a template leaves open, say
    nothing."""
    sizes = (accelerate.size_key(settings, name) for name in _SIZES)
    for key in (accelerate.PROCESSES, accelerate.MACHINES, *sizes):
        if is_said(settings, key):
            settings.count(key)
    for name in _SWITCHES:
        if is_said(settings, key := accelerate.fsdp_key(settings, name)):
            settings.flag(key)
    if settings.get("mixed_precision") is not False and is_said(settings, "mixed_precision"):
        settings.choice("mixed_precision", _PRECISIONS)
    if is_said(settings, version := accelerate.fsdp_key(settings, "version")):
        settings.choice(version, _VERSIONS)


def is_said(settings: StackSettings, key: str) -> bool:
    """Whether a key has a value that is known."""
    text = str(settings.get(key, "")).strip()
    return text.casefold() not in _EMPTY and not has_substitution(text) and "{{" not in text
