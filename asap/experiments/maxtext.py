"""Configurations of MaxText in the order of its pyconfig.py: base.yml, the file and its bases, the model's file,
the command."""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, PlanError
from asap.core.files import is_file
from asap.core.numbers import digits
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, blamed_on, read_document
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.launch.job import set_slices
from asap.experiments.record_file import FIELDS
from asap.experiments.tables.reader import read_table
from asap.models import find_architecture
from asap.stacks.maxtext.architecture import ACTIVATIONS, KEYS, OF_MODEL, OVERRIDE_MODEL, model_name_of
from asap.stacks.maxtext.mesh import FILLED_BY_DEFAULT, MESH_AXES, RULES, axis_key, axis_roles, open_axes, said_product
from asap.stacks.registry import OF_YAML, irrelevant, spec, specs
from asap.stacks.stack_settings import StackSettings, overriding
from asap.stacks.unread import nearest

TABLE = spec("maxtext")
OVERRIDE = "override"
BASE = Path("base.yml")
_BASE, _DEEPEST_BASE = "base_config", 8
_LIKE, _ALMOST = 0.7, 0.88
"""Shares of equal letters: of a name that a user may have meant, and of a slip."""
OPEN = {axis_key(network, name): -1 for network, name in FILLED_BY_DEFAULT.items()}
_SLICES_OF_FILE, _SERVING = ("compile_topology_num_slices", "num_slices"), TABLE.names["serving"]
_OF_EXPERTS = ("base_moe_mlp_dim", "shared_experts")
"""What a base.yml of 2025 has for DeepSeek's experts, whatever the model is."""
_MODEL, _TOPOLOGY, _FLAGS, TOKEN = "model_name", "compile_topology", "compile_xla_flags", "hf_access_token"
_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)

_Said = dict[str, tuple[Any, str]]
"""Values, and where each was said."""


@cache
def known_keys() -> frozenset[str]:
    """Keys that MaxText has or had since 2024."""
    return TABLE.words | irrelevant("maxtext") | {*TABLE.names["tensors"]}


def is_override(key: str) -> bool:
    """Whether an override is for MaxText, which refuses what it does not know."""
    return "." not in key and (key not in FIELDS or key in known_keys())


def read_maxtext(
    document: Document, overrides: Iterable[str], experiment: Experiment, said: Iterable[tuple[str, str]] = ()
) -> Experiment:
    """``experiment`` with what the configuration says; its hardware, if it names any, wins over the file's.

    Args:
        document: the file that MaxText is started with; without values where there is none.
        overrides: ``key=value`` of the user.
        experiment: what is known besides.
        said: ``key=value`` of a script, and where each was said.

    Raises:
        ConfigError: a key that is almost one of MaxText's, any unknown one of the user's, settings that contradict each
            other, or another task than training.
        UsageError: an override is not ``key=value``.
    """
    values, notes = _settings(document, said := tuple(said), overrides := tuple(overrides))
    places = {key: place for key, (_, place) in values.items()}
    settings = StackSettings({key: one for key, (one, _) in values.items()}, str(document.path), places)
    with blamed_on(str(document.path)):
        experiment, derived = _add_hardware(settings, experiment.knowing(*notes))
    found = read_table(TABLE, settings.overridden(derived) if derived else settings, document.path, (), experiment)
    flags, of_yaml = settings.text(_FLAGS), document.is_yaml and bool(document.values) and not (said or overrides)
    environment = found.environment | ({_FLAGS: redacted(flags)} if flags else {})
    of_model = {*KEYS.values()} - {ACTIVATIONS}  # the record has them as its model; activations name its tensors
    shapes = of_model & {*values.get(OF_MODEL, ((), ""))[0]}
    own = {key: value for key, value in found.hyperparameters.items() if key not in shapes}
    if _MODEL in settings and OF_MODEL not in settings:
        found = found.knowing(provenance={"model": f"{settings.source(_MODEL)}, in MaxText's file of it"})
    update = {"environment": environment, "hyperparameters": own | ({OF_YAML: True} if of_yaml else {})}
    return found.model_copy(update=update)


def _settings(document: Document, said: Iterable[tuple[str, str]], overrides: Iterable[str]) -> tuple[_Said, list[str]]:
    """What files and the command say, without what a base.yml has as MaxText's own does, and notes."""
    values = said_by = _read_file(document, _DEEPEST_BASE)
    if document.path.parent.name == "models" and not {_MODEL, _BASE} & document.values.keys():
        values[_MODEL] = (document.path.stem, document.path.name)
    over = _read_command((*said, *((text, OVERRIDE) for text in overrides)), values)
    name = model_name_of((values | over).get(_MODEL, ("", ""))[0])
    path = find_model_file(document.path, name) if document.values else None
    if path is not None:
        of_model = _read_one(read_document(path))
        allowed = (values | over).get(OVERRIDE_MODEL, (False, ""))[0] is True
        if not allowed and (both := [key for key in of_model if key in over and over[key][0] != of_model[key][0]]):
            reason = f"{', '.join(both)} contradicts the file of the model, {path.parent.name}/{path.name}"
            raise ConfigError(reason, where=over[both[0]][1], hint=f"MaxText wants {OVERRIDE_MODEL}=true")
        ignored = [key for key in of_model if of_model[key][0] != values.get(key, of_model[key])[0] and key != RULES]
        wins = "the file of the model"
        values = _laid(values, of_model) | {OF_MODEL: ([*of_model], path.name)}
    elif name and find_architecture(name):
        ignored, wins = [key for key in dict.fromkeys(KEYS.values()) if key in values], f"{_MODEL}={name}"
        values = {key: one for key, one in values.items() if key not in ignored}
    else:
        ignored, wins = [], ""
    ignored = [key for key in ignored if said_by[key][1].startswith(f"{document.path.name}:")]
    notes = [f"{', '.join(ignored)} of {document.path.name} does not count: {wins} wins"] if ignored else []
    values = {key: one for key, one in _laid(values, over).items() if key != TOKEN and not _is_none(key, one[0])}
    mesh = {key: values[key][0] for key in (RULES, MESH_AXES) if key in values}
    with blamed_on(str(document.path)):
        if mesh and all(values[key][1].startswith(f"{BASE.name}:") for key in mesh) and axis_roles(mesh).usual:
            values = {key: one for key, one in values.items() if key not in mesh}
    if key := next((key for key, one in values.items() if isinstance(one[0], dict) and key in TABLE.defaults), None):
        raise ConfigError(f"{key} must be a value, not a mapping", where=values[key][1])
    if (key := next((key for key, one in values.items() if one[1].partition(":")[0] in _SERVING), None)) is not None:
        reason = f"{key} makes this a configuration for serving"
        raise ConfigError(reason, where=values[key][1], hint="give one that trains")
    return values, notes


def _is_none(key: str, value: Any) -> bool:
    """Whether MaxText takes a value as none; a policy of that name is one."""
    return str(value).casefold() == "none" and key != "remat_policy"


def _laid(below: _Said, above: _Said) -> _Said:
    """One layer over another. Logical axis rules are merged dimension by dimension, as pyconfig does."""
    laid = below | above
    old, new = (layer.get(RULES, (None, ""))[0] for layer in (below, above))
    replaces = above.get("override_logical_axis_rules", (False, ""))[0] is True
    if isinstance(old, list) and isinstance(new, list) and not replaces:
        replaced = {str(rule[0]) for rule in new if isinstance(rule, list) and rule}
        kept = [rule for rule in old if not (isinstance(rule, list) and rule and str(rule[0]) in replaced)]
        laid[RULES] = ([*kept, *new], above[RULES][1])
    return laid


def _read_file(document: Document, deeper: int) -> _Said:
    """Settings of a file over those of its bases, beside it or in MaxText's folder ``configs`` above it."""
    base = document.values.get(_BASE)
    whole = base is None and document.values.keys() >= {*TABLE.files.needs}
    own = _read_one(document, checked=not whole)
    if whole and document.path.name == BASE.name:
        own = {key: one for key, one in own.items() if _is_unusual(key, one[0])}
    if not base:
        return own
    folders = (document.path.parent, *_folders_of_maxtext(document.path))
    path = next((path for folder in folders if is_file(path := folder / str(base))), None)
    if path is None and Path(str(base)).name != BASE.name:
        raise ConfigError(f"{_BASE} {plain(base, 80)} is not there", where=document.place(_BASE))
    if not deeper:
        raise ConfigError("follows too many base_config files", where=document.place(_BASE))
    return own if path is None else _laid(_read_file(read_document(path), deeper - 1), own)


def _read_one(document: Document, checked: bool = True) -> _Said:
    """Settings of one file; ``checked``: raise ConfigError at a key that is a slip."""
    said = {key: value for key, value in document.values.items() if key != _BASE}
    if checked and (slip := next((key for key in said if _is_slip(key)), None)) is not None:
        raise _unknown_key(slip, document.place(slip))
    return {
        name: (value, document.place(key).rpartition("/")[2])
        for key, value in said.items()
        for name in _today(key)
        if name == key or name not in said
    }


def _today(key: str) -> tuple[str, ...]:
    """What a key is called today; one that MaxText had until the end of 2023 stands for several."""
    return TABLE.sections.get(key, (key,))


def _is_unusual(key: str, value: Any) -> bool:
    """Whether a base.yml has a key otherwise than MaxText's own, or one that MaxText does not have."""
    usual = OPEN.get(key, 1 if key.endswith("_parallelism") else TABLE.defaults.get(key, value))
    differs = value != usual and str(value) != str(usual) and key not in _OF_EXPERTS
    return differs or key in (RULES, MESH_AXES) or key not in known_keys()


def _read_command(said: Iterable[tuple[str, str]], below: Mapping[str, object]) -> _Said:
    found: _Said = {}
    for text, place in said:
        for key, value in overriding([text]).items():
            unknown = place == OVERRIDE and not {*_today(key)} & (below.keys() | known_keys())
            if unknown or _is_slip(key):
                raise _unknown_key(key, place)
            found |= dict.fromkeys(_today(key), (parse_yaml(value, f"{place} {key}")[0] if value else "", place))
    return found


def _is_slip(key: str) -> bool:
    known = known_keys()
    return not {key, f"{key}."} & known and key not in TABLE.sections and nearest(key, known, _ALMOST) is not None


def _unknown_key(key: str, place: str) -> ConfigError:
    near = nearest(key, known_keys(), _LIKE)
    hint = f"did you mean {near}?" if near else "MaxText's base.yml has no such key"
    return ConfigError(f"unknown key {plain(key, 60)}", where=place, hint=hint)


def find_model_file(config: Path, name: str | None) -> Path | None:
    """``models/<name>.yml`` beside the configuration, beside its folder, or in MaxText's folder ``configs`` above."""
    if name is None or not _NAME.fullmatch(name):
        return None
    folders = (*config.absolute().parents[:2], *_folders_of_maxtext(config))
    return next((file for folder in folders if (file := folder / "models" / f"{name}.yml").is_file()), None)


def _folders_of_maxtext(config: Path) -> list[Path]:
    return [parent for parent in config.absolute().parents if parent.name == "configs"]


def _add_hardware(settings: StackSettings, experiment: Experiment) -> tuple[Experiment, dict[str, Any]]:
    """``experiment`` with the slices of TPUs that are said, and of GPUs what the open axis over DCN takes."""
    given, topology = experiment.hardware, settings.text(_TOPOLOGY)
    left, product = open_axes(settings, "dcn"), said_product(settings, "dcn")
    counts = (digits(str(settings.get(key))) for key in _SLICES_OF_FILE)
    slices = next(filter(None, counts), 1 if left else product)
    if not (given.name or given.chip or given.topology or given.devices):
        return set_slices(topology, slices, experiment, settings.source(_TOPOLOGY)), {}
    differs = topology is not None and topology != given.name
    notes = (f"{_TOPOLOGY} {plain(topology, 40)} is not the hardware that was said",) if differs else ()
    if given.topology and "slices" in given.model_fields_set and not left and product != given.slices:
        raise PlanError(f"dcn_*_parallelism multiply to {product}, not to the {given.slices} slices")
    if given.topology and "slices" not in given.model_fields_set and slices > 1:
        devices = given.devices * slices if given.devices else None
        given = given.model_copy(update={"slices": slices, "devices": devices})
    domains, rest = divmod(given.devices or 1, said_product(settings, "ici") * product)
    takes = not given.topology and left and not rest and domains * product > 1 and not open_axes(settings, "ici")
    return experiment.knowing(*notes, hardware=given), {left[0]: domains} if takes else {}


def over_model(values: Mapping[str, Any]) -> list[str]:
    """Shapes that a log says over those of its model, as overrides: it prints what ran."""
    kept = dict.fromkeys(KEYS.values()) if values.get(OVERRIDE_MODEL) is True else ()
    return [f"{key}={values[key]}" for key in kept if values.get(key) is not None]


@cache
def _own_keys() -> frozenset[str]:
    """Keys that no table of another stack has: a file with none of them is not known to be MaxText's."""
    words = {word for folder, table in specs().items() for word in table.words | irrelevant(folder)}
    return known_keys() - {word.rpartition(".")[2] for word in words}


def is_told_by(settings: Collection[str], config: Path, model: str | None) -> bool:
    """Whether settings are MaxText's for certain: by a key of its own, or by a model that it has."""
    if not _own_keys().isdisjoint(settings):
        return True
    return model is not None and (find_model_file(config, model) is not None or find_architecture(model) is not None)
