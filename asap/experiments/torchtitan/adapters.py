"""Whether a run of torchtitan trains adapters alone: by a converter, a section or the name of its flavor."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain

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
