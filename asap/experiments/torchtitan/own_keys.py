"""torchtitan's settings that a fork or a later release has, and what of a run they change."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.named_model import SHAPES
from asap.plans.plan import Plan
from asap.stacks.registry import irrelevant
from asap.stacks.stack_settings import StackSettings
from asap.stacks.torchtitan import settings as titan

_SECTIONS = ("model", "parallelism", "activation_checkpoint")
_KNOWN = titan.TABLE.words() | irrelevant("torchtitan")
"""Of all versions from December 2023 to August 2026."""
NAMES_OF_SHAPES = re.compile(
    r"(?:^|_)(?:moe|experts?|dim|heads?|kv|hidden|ffn|mlp|vocab\w*|layers?|window|depth|width|mtp|rank|quantizers?)(?:_|$)"
)
"""Names of what decides a model's shapes."""
_VOCABULARY = re.compile(r"\.(?:padded_)?vocab(?:ulary)?_size$")
_MOST = 8
_ISLANDS, _EVERY = "fault_tolerance.semi_sync_method", "fault_tolerance.sync_steps"


def own_vocabulary(settings: StackSettings) -> str | None:
    """A setting outside of ``[model]`` that no torchtitan has and that by its name is the vocabulary's size."""
    return next((key for key in settings if _VOCABULARY.search(key) and not key.startswith("model.")), None)


def own_shapes(settings: StackSettings) -> str | None:
    """Settings of ``[model]`` that no torchtitan has and that by their name change its shapes; ``None`` without."""
    found = [key for key in _own(settings, ("model",)) if NAMES_OF_SHAPES.search(key)]
    return _listed(found) if found else None


def notes_on_own(settings: StackSettings) -> tuple[str, ...]:
    """Notes on settings whose effect is not known, and on replicas that go their own way for some steps."""
    shapes = [key for key in _own(settings, ("model",)) if NAMES_OF_SHAPES.search(key)]
    others = [key for key in _own(settings, _SECTIONS) if key not in shapes]
    notes = [f"not read, as no torchtitan has it: {_listed(others)}"] if others else []
    if settings.get(_ISLANDS) not in (None, "") and settings.flag("fault_tolerance.enable"):
        every = plain(settings.get(_EVERY, "some"), 20)
        notes.append(f"replicas exchange what they learnt once in {every} steps ({_ISLANDS}); taken as in every step")
    return tuple(notes)


def unknown_shapes(listed: str, model: str) -> str:
    """The note on a model that they change."""
    return f"the model is unknown: torchtitan has no {listed}, which by its name changes {model}: add {SHAPES}"


def _own(settings: StackSettings, sections: Iterable[str]) -> list[str]:
    parts = ((key, key.split(".")) for key in settings if "." in key)
    return [key for key, words in parts if words[0] in sections and ".".join(words[:2]) not in _KNOWN]


def _listed(keys: list[str]) -> str:
    return plain(", ".join(keys[:_MOST]), 240) + (", …" if len(keys) > _MOST else "")


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


_ADAPTERS = re.compile(r"(?<![a-z])(?:q?lora|dora|peft|adapters?)(?![a-z])", re.IGNORECASE)
_CONVERTERS, _FLAVOR = "model.converters", "model.flavor"
_ENABLED = ("enable", "enabled", "use")
_OFF = ("false", "none", "0", "")


def refuse_adapters(settings: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where adapters are trained."""
    named = next((key for key in (_CONVERTERS, _FLAVOR) if _ADAPTERS.search(str(settings.get(key) or ""))), None)
    sections = (str(key).rpartition(".")[0] for key in settings)
    section = next((one for one in sections if _ADAPTERS.fullmatch(one.rpartition(".")[2])), None)
    switches = [str(settings[key]) for name in _ENABLED if (key := f"{section}.{name}") in settings]
    if any(switch.casefold() in _OFF for switch in switches):
        section = None
    if found := named or section:
        shown = f"{found} = {plain(settings[found], 40)}" if named else plain(found, 60)
        reason = f"{shown}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains all of them")
