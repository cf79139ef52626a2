"""DeepSpeed's settings as they are written: in JSON, and in the words of what starts it."""

import json
from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.stacks.accelerate.stack import KIND, SIZES
from asap.stacks.accelerate.stack import lines_to_paste as yaml_and_options
from asap.stacks.deepspeed.settings import (
    ACCUMULATION,
    OFFLOAD,
    SEQUENCE,
    STAGE,
    TENSOR,
    layout,
    prepared,
    refusals,
    written,
    zero_stage,
)
from asap.stacks.trainer.arguments import OF_YAML, SECTION, is_run_by_yaml
from asap.stacks.writing import yaml_lines

__all__ = ["layout", "prepared", "refusals", "written"]

OF_JSON = "# in the DeepSpeed configuration that it names:"
"""Between the arguments and the JSON."""
PYTHON = f"{SECTION}("
"""How arguments in Python begin."""
NAMED = f"{SECTION}.deepspeed"
"""Among a run's settings: a configuration of the launcher's own, named instead of a file (``zero3`` of ms-swift)."""
_OWN_OFFLOADS = {0: (), 1: (), 2: ("optimizer",), 3: ("optimizer", "parameters")}
"""What ``zero2_offload`` and ``zero3_offload`` offload (modelscope/ms-swift, ``swift/config``)."""


def lines(changed: Mapping[str, str], current: Mapping[str, object]) -> str:
    """Changed settings as JSON, with the arguments of the program that fill it, or in the launcher's words.

    Raises:
        PlanError: the launcher has none for one of them.
    """
    typed = {key: _typed(value) for key, value in changed.items()}
    return _lines_of_accelerate(typed, current) if is_said_by_accelerate(current) else lines_to_paste(typed, current)


def _typed(value: str) -> object:
    switches = {"true": True, "false": False}
    return switches.get(value, int(value) if value.lstrip("-").isdecimal() else value)


def lines_to_paste(settings: Mapping[str, object], current: Mapping[str, object]) -> str:
    """Settings to change, by dotted key, as text.

    Args:
        settings: what changes.
        current: the settings of the run.
    """
    if is_run_by_yaml(current):
        arguments = yaml_lines({key: json.dumps(value) for key, value in settings.items() if key in OF_YAML})
        return _both(arguments, OF_JSON, {key: value for key, value in settings.items() if key not in OF_YAML})
    of_json = {key: value for key, value in settings.items() if not key.startswith(f"{SECTION}.")}
    said = {key.removeprefix(f"{SECTION}."): value for key, value in settings.items() if key not in of_json}
    heading = OF_JSON
    if of_json and NAMED in current:
        whole = {key: value for key, value in current.items() if not key.startswith(f"{SECTION}.")} | of_json
        if name := _own_name(of_json, whole):
            said, of_json = {"deepspeed": name, **said}, {}
        else:
            heading, of_json = "# as a DeepSpeed configuration, FILE.json, for --deepspeed FILE.json:", whole
    if not said and heading == OF_JSON:
        return json_text(of_json)
    by_options = any(key.startswith(f"{SECTION}.") for key in current)
    return _both(_options(said) if by_options else _in_python(said), heading, of_json)


def json_text(settings: Mapping[str, object]) -> str:
    """The settings as JSON, on one line."""
    tree: dict[str, object] = {}
    for key, value in settings.items():
        node = tree
        *path, name = key.split(".")
        for part in path:
            inner = node.setdefault(part, {})
            assert isinstance(inner, dict)
            node = inner
        node[name] = value
    return json.dumps(tree)


def _both(arguments: str, heading: str, of_json: Mapping[str, object]) -> str:
    second = f"{heading}\n{json_text(of_json)}" if of_json else ""
    return "\n".join(text for text in (arguments, second) if text)


def _options(arguments: Mapping[str, object]) -> str:
    return " ".join(f"--{key} {str(value).lower()}" for key, value in arguments.items())


def _in_python(arguments: Mapping[str, object]) -> str:
    return f"{PYTHON}{', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _own_name(changed: Mapping[str, object], whole: Mapping[str, object]) -> str | None:
    """The name of ms-swift's own configuration that says what changes; ``None`` where none does."""
    if changed.keys() - {STAGE, *OFFLOAD.values()} or str(whole.get(TENSOR, 1)) != "1":
        return None
    stage = zero_stage(whole)
    offloaded = tuple(what for what, key in OFFLOAD.items() if whole.get(key) not in (None, "none"))
    if offloaded and offloaded != _OWN_OFFLOADS[stage]:
        return None
    return f"zero{stage}_offload" if offloaded else f"zero{stage}"


CONFIG = "deepspeed_config"
IN_FILE = f"{CONFIG}.deepspeed_config_file"
OF_ACCELERATE = {
    STAGE: f"{CONFIG}.zero_stage",
    "zero_optimization.offload_optimizer.device": f"{CONFIG}.offload_optimizer_device",
    "zero_optimization.offload_param.device": f"{CONFIG}.offload_param_device",
    ACCUMULATION: f"{CONFIG}.gradient_accumulation_steps",
    SEQUENCE: f"{SIZES}.{SIZES}_sp_size",
}
"""DeepSpeed's settings and what Accelerate calls them."""


def is_said_by_accelerate(settings: Mapping[str, object] | None) -> bool:
    """Whether settings of DeepSpeed stand in Accelerate's configuration."""
    return settings is not None and str(settings.get(KIND)).upper() == "DEEPSPEED"


def _lines_of_accelerate(changed: Mapping[str, object], current: Mapping[str, object]) -> str:
    """Changed settings of DeepSpeed in Accelerate's words.

    Raises:
        PlanError: it has none for one of them.
    """
    unsaid = [key for key in changed if key not in OF_ACCELERATE and not key.startswith(f"{SECTION}.")]
    if unsaid:
        raise PlanError(
            f"Accelerate says {plain(', '.join(unsaid), 80)} in a DeepSpeed JSON alone", hint=f"{IN_FILE}: FILE.json"
        )
    named = {OF_ACCELERATE.get(key, key): value for key, value in changed.items()}
    return yaml_and_options(named, {OF_ACCELERATE.get(key, key): value for key, value in current.items()})
