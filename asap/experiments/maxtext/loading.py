"""Settings in the order of MaxText's pyconfig.py: base.yml, the file and its bases, the model's file, the overrides."""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UsageError
from asap.core.files import is_file
from asap.core.text import plain
from asap.experiments.files.documents import Document, read_document
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.maxtext.settings import (
    DEFAULT,
    OVERRIDE,
    TABLE,
    MaxTextSettings,
    Setting,
    SettingLayer,
    check_keys,
    known_keys,
    own_keys,
    unknown_key,
)
from asap.models import find_architecture
from asap.stacks.maxtext.overrides import OVERRIDE_MODEL
from asap.stacks.maxtext.sharding_rules import MESH_AXES, MODEL_ROLES, RULES
from asap.stacks.stack_settings import not_a_setting

_BASE = "base_config"
_DEEPEST_BASE = 8
_AROUND_A_STEP = re.compile(
    r"(?:^|_)(?:checkpoints?|ckpt|wandb|metrics?|logs?|logging|eval|save|upload|path|dir|directory|bucket|dataset|seed)(?:_|$)"
)
"""Keys of a fork's base.yml that a run may set: by their name they change no step."""
_INSTRUCT = "-Instruct"
_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)


def load_settings(document: Document, overrides: Iterable[str], said: Iterable[tuple[str, str]]) -> MaxTextSettings:
    """Settings of a MaxText configuration with ``key=value`` overrides on top.

    Args:
        document: the file that MaxText is started with.
        overrides: ``key=value`` of the user, which win.
        said: the same of a script, and where it was said.

    Raises:
        ConfigError: a key that is almost one of MaxText's (in the hint) in another file than a base.yml, any unknown
            key among the user's own overrides, a base file that is not there, or an override that contradicts the
            model's file.
        UsageError: an override that is not ``key=value`` or repeated.
    """
    settings = {key: Setting(value, DEFAULT, SettingLayer.DEFAULT) for key, value in TABLE.defaults.items()}
    _lay(settings, _file_settings(document, _DEEPEST_BASE))
    if document.path.parent.name == "models" and not {"model_name", _BASE} & document.values.keys():
        settings["model_name"] = Setting(document.path.stem, document.path.name, SettingLayer.FILE)
    over = _overrides([*said, *((text, OVERRIDE) for text in overrides)], settings)
    named = {**settings, **over}["model_name"].value
    path = find_model_file(document.path, model_name_of(named)) if document.values else None
    overruled: tuple[str, ...] = ()
    if path is not None:
        model = _model_settings(path, {**settings, **over}, over)
        said_by_file = {key for key, one in settings.items() if one.layer is SettingLayer.FILE and key != RULES}
        both = (key for key in model if key in said_by_file and path != document.path.absolute())
        differs = (key for key in both if settings[key].value != model[key].value)
        overruled = tuple(f"{settings[key].origin}: {key}" for key in differs)
        _lay(settings, model)
    _lay(settings, over)
    if path is None and str(named) in MODEL_ROLES:
        settings = {key: setting for key, setting in settings.items() if key not in (RULES, MESH_AXES)}
    return MaxTextSettings(settings, overruled)


def _lay(settings: dict[str, Setting], over: Mapping[str, Setting]) -> None:
    """Put one layer over another. Logical axis rules are merged dimension by dimension, as pyconfig does."""
    below, above, replaces = settings.get(RULES), over.get(RULES), over.get("override_logical_axis_rules")
    settings |= over
    merges = below and above and isinstance(below.value, list) and isinstance(above.value, list)
    if below and above and merges and not (replaces and replaces.value is True):
        replaced = {str(rule[0]) for rule in above.value if isinstance(rule, list) and rule}
        kept = [rule for rule in below.value if not (isinstance(rule, list) and rule and str(rule[0]) in replaced)]
        settings[RULES] = Setting([*kept, *above.value], above.origin, above.layer)


def _file_settings(document: Document, deeper: int) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    if base := document.values.get(_BASE):
        _lay(settings, _base_settings(document, str(base), deeper))
    whole = _BASE not in document.values and document.values.keys() >= {*TABLE.files.needs}
    is_base = whole and document.path.name == "base.yml"
    _lay(settings, _values(document, SettingLayer.DEFAULT if is_base else SettingLayer.FILE, checked=not whole))
    return settings


def _values(document: Document, layer: SettingLayer, *, checked: bool = True) -> dict[str, Setting]:
    """Settings of one file; ``checked``: raise ConfigError at a key that is a slip."""
    said = {key: value for key, value in document.values.items() if key != _BASE}
    if checked:
        check_keys({_names_of(key)[0]: document.place(key) for key in said})
    settings: dict[str, Setting] = {}
    for key, value in said.items():
        names = [name for name in _names_of(key) if name == key or name not in said]
        settings |= dict.fromkeys(names, Setting(value, document.place(key).rpartition("/")[2], layer))
    return settings


def _names_of(key: str) -> tuple[str, ...]:
    """What a key is called today; one that MaxText had until the end of 2023 stands for several."""
    return TABLE.sections.get(key, (key,))


def _base_settings(document: Document, base: str, deeper: int) -> dict[str, Setting]:
    """Settings of a file beside a configuration, or in MaxText's folder ``configs`` above it."""
    folders = (document.path.parent, *_folders_of_maxtext(document.path))
    path = next((path for folder in folders if is_file(path := folder / base)), None)
    if path and deeper:
        return _file_settings(read_document(path), deeper - 1)
    if path:
        raise ConfigError("follows too many base_config files", where=document.place(_BASE))
    if Path(base).name == "base.yml":
        return {}
    raise ConfigError(f"{_BASE} {plain(base, 80)} is not there", where=document.place(_BASE))


def _model_settings(path: Path, around: Mapping[str, Setting], said: Mapping[str, Setting]) -> dict[str, Setting]:
    """Settings of the model's file: over the configuration, and under overrides only where it is allowed."""
    settings = _values(read_document(path), SettingLayer.MODEL)
    if OVERRIDE_MODEL in around and around[OVERRIDE_MODEL].value is True:
        return {key: setting for key, setting in settings.items() if key not in said}
    if both := [key for key in settings if key in said and said[key].value != settings[key].value]:
        reason = f"{', '.join(both)} contradicts the file of the model, {path.parent.name}/{path.name}"
        raise ConfigError(reason, where=said[both[0]].origin, hint=f"MaxText wants {OVERRIDE_MODEL}=true")
    return settings


def _overrides(overrides: Iterable[tuple[str, str]], below: Mapping[str, Setting]) -> dict[str, Setting]:
    said: dict[str, Setting] = {}
    read = [(*_override(text, origin), origin) for text, origin in overrides]
    of_script = {_names_of(key)[0]: place for key, _, place in read if place != OVERRIDE}
    check_keys(of_script, of_fork=not known_keys() >= below.keys())
    for key, value, origin in read:
        names = _names_of(key)
        of_fork = key in below and _AROUND_A_STEP.search(key)
        if origin == OVERRIDE and not of_fork and names[0] not in known_keys():
            raise unknown_key(key, origin)
        if origin == OVERRIDE and (
            twice := next((one for one in names if one in said and said[one].origin == origin), None)
        ):
            raise UsageError("is given twice", where=twice)
        said |= dict.fromkeys(names, Setting(value, origin, SettingLayer.OVERRIDE))
    return said


def _override(text: str, origin: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    if not separator or not re.fullmatch(r"\w+", key, re.ASCII):
        raise not_a_setting(text)
    return key, parse_yaml(value, f"{origin} {key}" if origin == OVERRIDE else origin)[0] if value else ""


def is_told_by(settings: Collection[str], config: Path, model: str | None) -> bool:
    """Whether settings are MaxText's for certain: by a key of its own, or by a model that it has."""
    if not own_keys().isdisjoint(settings):
        return True
    return model is not None and (find_model_file(config, model) is not None or find_architecture(model) is not None)


def model_name_of(value: object) -> str | None:
    """The model whose file is meant; ``None`` for ``default``. An instruct model has the shapes of its base."""
    name = str(value or "").replace(_INSTRUCT, "")
    return None if name in ("", "default", "None", "none") else name


def find_model_file(config: Path, name: str | None) -> Path | None:
    """``models/<name>.yml`` beside the configuration, beside its folder, or in MaxText's folder ``configs`` above."""
    if name is None or not _NAME.fullmatch(name):
        return None
    folders = (*config.absolute().parents[:2], *_folders_of_maxtext(config))
    return next((file for folder in folders if (file := folder / "models" / f"{name}.yml").is_file()), None)


def _folders_of_maxtext(config: Path) -> list[Path]:
    return [parent for parent in config.absolute().parents if parent.name == "configs"]
