"""An architecture from a Hugging Face config.json, or by the name that a configuration gives it."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, find_named, validated
from asap.experiments.shell import has_substitution
from asap.models import Architecture, find_architecture
from asap.models.architecture import SHAPES
from asap.models.catalogue import find_base
from asap.stacks.shapes import shapes_of
from asap.stacks.spec import Model
from asap.stacks.stack_settings import StackSettings

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
MODEL = Model.model_validate(_TABLE["model"])
"""What files call the fields of an Architecture, and what a ``model_type`` leaves unsaid."""
_OTHER_NAMES: dict[str, str] = _TABLE["other_names"]
_USUAL = {"gated_mlp": True, "qk_norm": False, "parallel_block": False, "tied_embeddings": False}
_SHARED, _KINDS = "shared_expert_intermediate_size", "layer_types"
_ENCODERS = ("vision_config", "audio_config", "encoder")
_TEXT = ("text_config", "llm_config", "language_config")


def read_huggingface(document: Document, experiment: Experiment) -> Experiment:
    """``experiment`` with the architecture of the file.

    Raises:
        ConfigError: the model is not a decoder that is read, or the file contradicts itself.
    """
    config, notes = _decoder(document)
    settings, kind = StackSettings(config, str(document.path)), _model_type(config, str(document.path))
    said, keys = shapes_of(MODEL, settings, kind)
    fields, said_by = {**_USUAL, **said}, {field: settings.source(key) for field, key in keys.items()}
    if "experts" in fields and fields.get("expert_d_ff") and settings.get(_SHARED):
        fields["shared_experts"] = round((settings.count(_SHARED) or 0) / int(fields["expert_d_ff"]))
        said_by["shared_experts"] = f"{settings.source(_SHARED)} / expert width"
    if "experts" in fields and (dense := settings.get("mlp_only_layers")):
        notes += (f"mlp_only_layers {plain(dense, 60)} are taken as expert layers",)
    if "sliding_window" in fields and (kinds := settings.get(_KINDS)) and isinstance(kinds, list):
        fields["global_layer_every"], said_by["global_layer_every"] = _period(kinds), settings.source(_KINDS)
        if fields["global_layer_every"] is None and "full_attention" in kinds:
            notes += ("layer_types follow no period; all layers are taken as local",)
    name = config.get("_name_or_path") or document.values.get("_name_or_path")
    model = validated(Architecture, {"name": plain(name, 120) if name else None, **fields}, str(document.path))
    derived = {
        f"model.{field}": f"default of model_type {kind}" for field, value in fields.items() if value is not None
    }
    sources = derived | {f"model.{field}": source for field, source in said_by.items()}
    return experiment.knowing(*notes, model=model, provenance={"model": document.path.name} | sources)


def _decoder(document: Document) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The part of the file that describes the language model."""
    values = document.values
    inner = next((values[key] for key in _TEXT if isinstance(values.get(key), dict)), None)
    if inner is not None:
        return inner, (f"{document.path.name} describes more than text; only its language model is read",)
    if values.get("is_encoder_decoder"):
        raise ConfigError("is an encoder-decoder model; only decoders are read", where=str(document.path))
    for key in _TEXT:
        if values.get(key) is not None:
            raise ConfigError(f"{key} must be a mapping, not {plain(repr(values[key]), 40)}", where=str(document.path))
    encoder = next((key for key in _ENCODERS if key in values), None)
    if encoder:
        raise ConfigError(f"has a {encoder} and no text_config; only decoders are read", where=str(document.path))
    return values, ()


def _model_type(config: Mapping[str, Any], place: str) -> str:
    kind = config.get("model_type")
    if kind is not None and not isinstance(kind, str):
        raise ConfigError(f"model_type must be a word, not {plain(repr(kind), 40)}", where=place)
    kind = _OTHER_NAMES.get(kind or "", kind)
    if kind in MODEL.families:
        return kind
    name = plain(kind, 40) if kind else "(none)"
    near = difflib.get_close_matches(name, MODEL.families, n=3, cutoff=0.4) or sorted(MODEL.families)
    reason = f"model_type {name} is not a decoder that is read"
    raise ConfigError(reason, where=place, hint=f"nearest: {', '.join(near)}")


def _period(kinds: list[Any]) -> int | None:
    """After how many layers full attention comes back; ``None`` if it does not, or not regularly."""
    full = [number for number, kind in enumerate(kinds, 1) if kind == "full_attention"]
    every = full[0] if full else None
    return every if every and full == list(range(every, len(kinds) + 1, every)) else None


_NAMED = {kind: re.compile(rf"(?:^|_)(?:{names})(?=_|$)") for kind, names in _TABLE["kinds"].items()}


NO_MODEL = f"the model is not said: add model=NAME (such as llama3.1-8b), or {SHAPES}"
_CACHED = re.compile(r"(?:^|/)models--([\w.-]+?)--([\w.-]+)(?:/|$)")
_POINT = "___"  # what ModelScope's cache has for a point in a name: ``Qwen2___5-7B``
_MORE_THAN_TEXT = re.compile(
    r"[-_.](vl|vlm|vision|omni)(?![a-z])|llava|internvl|paligemma|pixtral|idefics|smolvlm|minicpm-?v|mllama|kosmos|fuyu",
    re.IGNORECASE,
)


def name_at_end(named: str) -> str | None:
    """The last part of a path whose beginning only a run can tell: ``$HOME/models/Qwen3-8B``; ``None`` where that is
    open, too."""
    name = named.rstrip("/").rpartition("/")[2] if has_substitution(named) else named
    return None if has_substitution(name) or not name else name


def model_named_in(path: Path, name: str) -> tuple[Architecture, tuple[str, ...]]:
    """The architecture of a folder that a file names, by the ``config.json`` in it, else of the name alone; raises
    like :func:`read_huggingface` and :func:`read_named_model`."""
    found = find_named(f"{name.rstrip('/')}/config.json", path)
    if found is None or found.path.parent.name != PurePosixPath(name).name:
        return read_named_model(name)
    read = read_huggingface(found.document(), Experiment(id="model"))
    assert read.model is not None
    return read.model.model_copy(update={"name": plain(name, 120)}), read.notes


def read_named_model(name: str) -> tuple[Architecture, tuple[str, ...]]:
    """The architecture of that name, or of that folder in the cache of Hugging Face's hub or ModelScope's, with notes;
    one that is not in the catalogue has a name alone.

    Raises:
        ConfigError: it is no decoder with attention, by its name.
    """
    cached = _CACHED.search(name)
    name = f"{cached[1]}/{cached[2]}" if cached else name.replace(_POINT, ".")
    shown = plain(name, 120)
    known = find_architecture(name)
    last = re.sub(r"[\W_]+", "_", name.rstrip("/").rpartition("/")[2].casefold())
    kind = next((kind for kind, named in _NAMED.items() if named.search(last)), None)
    if known is None and kind is not None:
        reason = f"the model {shown} is by its name {kind}, which is not modelled"
        raise ConfigError(reason, hint="add model=NAME if it is a decoder with attention after all")
    if known is None and (base := find_base(name)) is not None:
        note = f"the model {shown} is taken to have the shapes of {base.name}: add model=NAME if it has others"
        return base.model_copy(update={"name": shown}), (note,)
    ask = f"add model=NAME of one that is (such as llama3.1-8b), or {SHAPES}"
    unknown = (f"the model {shown} is not in the catalogue: {ask}",) if known is None else ()
    more = f"{shown} reads more than text; only its language model is read"
    found = (known or Architecture()).model_copy(update={"name": shown})
    return found, (*unknown, *([more] if _MORE_THAN_TEXT.search(name) else []))
