"""Settings in the order of MaxText's pyconfig.py: base.yml, the file and its bases, the model's file, the overrides."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UsageError
from asap.core.files import is_file
from asap.core.text import plain
from asap.experiments.files.documents import Document, read_document
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.maxtext.settings import (
    DEFAULT,
    DEFAULTS,
    EARLIER,
    OVERRIDE,
    MaxTextSettings,
    Setting,
    SettingLayer,
    check_key,
    check_keys,
    find_model_file,
    known_keys,
    model_name_of,
)
from asap.stacks.maxtext.sharding_rules import CUSTOM, MESH_AXES, MODEL_ROLES, RULES
from asap.stacks.stack_settings import not_a_setting

_BASE = "base_config"
_DEEPEST_BASE = 8
_WHOLE_BASE = {"base_emb_dim", "dcn_data_parallelism", MESH_AXES, RULES}
"""Keys that a base.yml of MaxText has, or a copy of one that stands for it, and hardly any other file all of."""

_AROUND_A_STEP = re.compile(
    r"(?:^|_)(?:checkpoints?|ckpt|wandb|metrics?|logs?|logging|eval|save|upload|path|dir|directory|bucket|dataset|seed)(?:_|$)"
)
"""Keys of a fork's base.yml that a run may set: by their name they change no step."""
_NONE = Setting(None, DEFAULT, SettingLayer.DEFAULT)


def load_settings(document: Document, overrides: Iterable[tuple[str, str]] = ()) -> MaxTextSettings:
    """Settings of a MaxText configuration with ``key=value`` overrides on top.

    Args:
        document: the file that MaxText is started with.
        overrides: ``key=value`` and where it was said; of two origins the later wins.

    Raises:
        ConfigError: a key that is almost one of MaxText's (in the hint) in another file than a base.yml, any unknown
            key among the user's own overrides, a base file that is not there, or an override that contradicts the
            model's file.
        UsageError: an override that is not ``key=value`` or repeated.
    """
    settings = {key: Setting(value, DEFAULT, SettingLayer.DEFAULT) for key, value in DEFAULTS.items()}
    _lay(settings, _file_settings(document, _DEEPEST_BASE))
    if document.path.parent.name == "models" and not {"model_name", _BASE} & document.values.keys():
        settings["model_name"] = Setting(document.path.stem, document.path.name, SettingLayer.FILE)
    said = _overrides(overrides, settings)
    named = said.get("model_name", settings["model_name"]).value
    path = find_model_file(document.path, model_name_of(named)) if document.values else None
    overruled: tuple[str, ...] = ()
    if path is not None:
        model = _model_settings(path, settings, said)
        overruled = _overruled(settings, model) if path != document.path.absolute() else ()
        _lay(settings, model)
    _lay(settings, said)
    if settings.get(CUSTOM, _NONE).value or (path is None and str(named) in MODEL_ROLES):
        settings = {key: setting for key, setting in settings.items() if key not in (RULES, MESH_AXES)}
        settings |= _custom_rules(document.path, settings) if document.values else {}
    return MaxTextSettings(settings, overruled)


def _overruled(below: Mapping[str, Setting], model: Mapping[str, Setting]) -> tuple[str, ...]:
    both = (key for key in model if key in below and key != RULES and below[key].layer is SettingLayer.FILE)
    return tuple(f"{below[key].origin}: {key}" for key in both if below[key].value != model[key].value)


def _lay(settings: dict[str, Setting], over: Mapping[str, Setting]) -> None:
    """Put one layer over another. Logical axis rules are merged dimension by dimension, as pyconfig does."""
    below, above = settings.get(RULES), over.get(RULES)
    replaces = over.get("override_logical_axis_rules")
    settings |= over
    if below and above and isinstance(below.value, list) and isinstance(above.value, list):
        if replaces is not None and replaces.value is True:
            return
        replaced = {str(rule[0]) for rule in above.value if isinstance(rule, list) and rule}
        kept = [rule for rule in below.value if not (isinstance(rule, list) and rule and str(rule[0]) in replaced)]
        settings[RULES] = Setting([*kept, *above.value], above.origin, above.layer)


def _file_settings(document: Document, deeper: int) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    if base := document.values.get(_BASE):
        _lay(settings, _base_settings(document, str(base), deeper))
    whole = _BASE not in document.values and document.values.keys() >= _WHOLE_BASE
    is_base = whole and document.path.name == "base.yml"
    _lay(settings, _values(document, SettingLayer.BASE if is_base else SettingLayer.FILE, checked=not whole))
    return settings


def _values(document: Document, layer: SettingLayer, *, checked: bool = True) -> dict[str, Setting]:
    """Settings of one file; ``checked``: raise ConfigError at a key that is a slip."""
    settings: dict[str, Setting] = {}
    if checked:
        check_keys({EARLIER.get(key, (key,))[0]: document.place(key) for key in document.values if key != _BASE})
    for key, value in document.values.items():
        if key != _BASE:
            names = EARLIER.get(key, (key,))
            line = document.lines.get(key)
            origin = f"{document.path.name}:{line}" if line else document.path.name
            settings |= {
                name: Setting(value, origin, layer) for name in names if name not in document.values or name == key
            }
    return settings


def _base_settings(document: Document, base: str, deeper: int) -> dict[str, Setting]:
    """Settings of a base file, which MaxText looks for beside the file and in its folder ``configs``."""
    configs = (parent for parent in document.path.absolute().parents if parent.name == "configs")
    path = next((path for folder in (document.path.parent, *configs) if is_file(path := folder / base)), None)
    if path and deeper:
        return _file_settings(read_document(path), deeper - 1)
    if path:
        raise ConfigError("follows too many base_config files", where=document.place(_BASE))
    if Path(base).name == "base.yml":
        return {}
    raise ConfigError(f"{_BASE} {plain(base, 80)} is not there", where=document.place(_BASE))


def _model_settings(path: Path, below: Mapping[str, Setting], said: Mapping[str, Setting]) -> dict[str, Setting]:
    """Settings of the model's file: over the configuration, and under overrides only where it is allowed."""
    document = read_document(path)
    settings = _values(document, SettingLayer.MODEL)
    allowed = said.get("override_model_config", below.get("override_model_config"))
    if allowed is not None and allowed.value is True:
        return {key: setting for key, setting in settings.items() if key not in said}
    both = [key for key in settings if key in said and said[key].value != settings[key].value]
    if both:
        raise ConfigError(
            f"{', '.join(both)} contradicts the file of the model, {path.parent.name}/{path.name}",
            where=said[both[0]].origin,
            hint="MaxText wants override_model_config=true",
        )
    return settings


def _custom_rules(path: Path, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Mesh and rules of ``custom_mesh_and_rule`` where its file lies beside the configuration or in ``configs``."""
    name = settings[CUSTOM].value if CUSTOM in settings else None
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]{1,80}", name, re.ASCII):
        return {}
    configs = (parent for parent in path.absolute().parents if parent.name == "configs")
    files = (folder / CUSTOM / f"{name}.yml" for folder in (path.parent, *configs))
    found = next((file for file in files if is_file(file)), None)
    values = _values(read_document(found), settings[CUSTOM].layer) if found else {}
    return {key: setting for key, setting in values.items() if key in (RULES, MESH_AXES)}


def _overrides(overrides: Iterable[tuple[str, str]], below: Mapping[str, Setting]) -> dict[str, Setting]:
    said: dict[str, Setting] = {}
    of_fork = not known_keys() >= below.keys()
    read = [(*_override(text, origin), origin) for text, origin in overrides]
    check_keys({EARLIER.get(key, (key,))[0]: place for key, _, place in read if place != OVERRIDE}, of_fork)
    for key, value, origin in read:
        if origin == OVERRIDE and (key not in below or not _AROUND_A_STEP.search(key)):
            check_key(EARLIER.get(key, (key,))[0], origin)
        for name in EARLIER.get(key, (key,)):
            if name in said and said[name].origin == origin == OVERRIDE:
                raise UsageError("is given twice", where=name)
            said[name] = Setting(value, origin, SettingLayer.OVERRIDE)
    return said


def _override(text: str, origin: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    if not separator or not re.fullmatch(r"\w+", key, re.ASCII):
        raise not_a_setting(text)
    return key, parse_yaml(value, f"{origin} {key}" if origin == OVERRIDE else origin)[0] if value else ""
