"""What MaxText is started for: pre-training and supervised fine-tuning are read, all else is refused by name."""

import re
from collections.abc import Iterator

from asap.core.errors import ConfigError
from asap.experiments.maxtext.settings import MaxTextSettings, SettingLayer

TRAINS = "pre-training and supervised fine-tuning of all weights are read"
TRAINERS = re.compile(r"(?i)(?:^|[./])maxtext[\w./]*[./](?:train(?:_compile|_sft|_sft_native)?|sft_trainer)(?:\.py)?$")
"""Modules and files of MaxText that run steps of training, or compile one."""
OTHER_PROGRAMS = re.compile(
    r"(?i)(?:^|[./])maxtext[\w./]*[./](?:\w*decode|maxengine_server|train_(?:rl|dpo|distill)|grpo_trainer|"
    r"\w*inference_\w*|offline_(?:mode|inference))(?:\.py)?$"
)
"""Those that serve, or train otherwise."""

_SERVING_BASES = ("inference.yml", "inference_jetstream.yml")
"""In ``configs/inference``: what configurations that serve are laid over."""
_OF_RL = ("rl", "trainer_devices_fraction", "rollout_tensor_parallelism")
"""Keys of ``configs/post_train/rl.yml`` alone."""


def refuse_other_tasks(settings: MaxTextSettings) -> None:
    """Refuse what runs no steps of training, or steps of another kind.

    Raises:
        ConfigError: with the task, and the setting that tells.
    """
    for task, key in _other_tasks(settings):
        raise ConfigError(f"makes this a configuration for {task}", where=settings.source(key), hint=TRAINS)


def _other_tasks(settings: MaxTextSettings) -> Iterator[tuple[str, str]]:
    said = [key for key in settings if settings.layer(key) in (SettingLayer.FILE, SettingLayer.OVERRIDE)]
    if settings.get("model_call_mode") == "inference":
        yield "serving", "model_call_mode"
    yield from (("serving", key) for key in said if settings.origin(key).partition(":")[0] in _SERVING_BASES)
    yield from (("reinforcement learning", key) for key in _OF_RL if key in said)
    if settings.flag("use_grpo"):
        yield "reinforcement learning", "use_grpo"
    if settings.flag("use_dpo"):
        yield "training by preferences", "use_dpo"
    adapters = settings.get("lora")
    if isinstance(adapters, dict) and adapters.get("enable_lora") is True:
        yield "training of adapters", "lora"
