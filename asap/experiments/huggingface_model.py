"""An architecture from a Hugging Face config.json, or by the name that a configuration gives it."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict

from asap.core.errors import ConfigError
from asap.core.numbers import whole_number
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, find_named, validated
from asap.experiments.shell import has_substitution
from asap.models import Architecture, find_architecture
from asap.models.architecture import SHAPES
from asap.models.catalogue import find_base


class Family(BaseModel):
    """What files of a ``model_type`` leave unsaid.

    Attributes:
        gated: an MLP of three matrices.
        tied: input and output embeddings are one matrix, unless ``tie_word_embeddings`` says otherwise.
        parallel: attention and MLP both read the input of their layer, unless ``use_parallel_residual`` says otherwise.
        qk_norm: a norm of each head's queries and keys.
        full_attention_every: with a window, one full-attention layer in so many.
        windowed: whether ``sliding_window`` counts without ``use_sliding_window``.
        defaults: counts by the name of their field in an Architecture.
        names: keys of fields that this family calls otherwise than :data:`NAMES`.
        dense_multiple: width of a dense MLP by default, in widths of the model.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    gated: bool = True
    tied: bool = False
    parallel: bool = False
    qk_norm: bool = False
    full_attention_every: int | None = None
    windowed: bool = True
    defaults: dict[str, int] = {}
    names: dict[str, tuple[str, ...]] = {}
    dense_multiple: int | None = None


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FAMILIES = {kind: Family.model_validate(said) for kind, said in sorted(_TABLE["families"].items())}
NAMES: dict[str, tuple[str, ...]] = {field: tuple(keys) for field, keys in _TABLE["names"].items()}
"""Field of an Architecture → names of its key."""
_OTHER_NAMES: dict[str, str] = _TABLE["other_names"]
_EXPERT_FIELDS = (
    "experts", "experts_per_token", "expert_d_ff", "shared_experts", "leading_dense_layers", "moe_every",
)  # fmt: skip

_ENCODERS = ("vision_config", "audio_config", "encoder")
_TEXT = ("text_config", "llm_config", "language_config")


def read_huggingface(document: Document, experiment: Experiment) -> Experiment:
    """``experiment`` with the architecture of the file.

    Raises:
        ConfigError: the model is not a decoder that is read, or the file contradicts itself.
    """
    config, notes = _decoder(document)
    reading = _Reading(config, document)
    reading.read()
    name = config.get("_name_or_path") or document.values.get("_name_or_path")
    fields = {"name": plain(name, 120) if name else None, **reading.fields}
    model = validated(Architecture, fields, str(document.path))
    provenance = {"model": document.path.name} | {f"model.{field}": reading.sources[field] for field in reading.fields}
    return experiment.knowing(*notes, *reading.notes, model=model, provenance=provenance)


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


class _Reading:
    """Fields of an architecture as they are found or derived, each with its source."""

    def __init__(self, config: Mapping[str, Any], document: Document):
        self.config = config
        self.place = str(document.path)
        self.file = document.path.name
        self.kind = self._model_type()
        self.family = FAMILIES[self.kind]
        self.fields: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.notes: list[str] = []

    def read(self) -> None:
        """Take what the file says, then what its family implies."""
        for field, keys in (NAMES | self.family.names).items():
            key = next((key for key in keys if self.config.get(key) is not None), None)
            if key:
                self.put(field, self._count(key), f"{self.file}: {key}")
        for field, value in self.family.defaults.items():
            self.derive(field, value)
        self._read_matrices()
        self._read_experts()
        self._read_window()

    def put(self, field: str, value: Any, source: str) -> None:
        """Set a field and say why."""
        self.fields[field], self.sources[field] = value, source

    def derive(self, field: str, value: Any) -> None:
        """Set a field that the file leaves out."""
        if field not in self.fields and value is not None:
            self.put(field, value, f"default of model_type {self.kind}")

    def _read_matrices(self) -> None:
        heads, width = self.fields.get("heads"), self.fields.get("d_model")
        self.derive("kv_heads", heads)
        if "kv_lora_rank" not in self.fields and heads and width and width % heads == 0:
            self.derive("head_dim", width // heads)
        if self.family.dense_multiple and width:
            self.derive("d_ff", self.family.dense_multiple * width)
        self.derive("gated_mlp", self.family.gated)
        self.derive("qk_norm", self.family.qk_norm)
        self._read_flag("parallel_block", "use_parallel_residual", self.family.parallel)
        self._read_flag("tied_embeddings", "tie_word_embeddings", self.family.tied)

    def _read_flag(self, field: str, key: str, default: bool) -> None:
        value = self.config.get(key)
        if isinstance(value, bool) and field not in self.fields:
            self.put(field, value, f"{self.file}: {key}")
        self.derive(field, default)

    def _read_experts(self) -> None:
        if self.fields.get("experts", 0) <= 1:
            for field in _EXPERT_FIELDS:
                self.fields.pop(field, None)
            return
        self.derive("expert_d_ff", self.fields.get("d_ff"))
        if self.config.get("shared_expert_intermediate_size") and "expert_d_ff" in self.fields:
            shared = self._count("shared_expert_intermediate_size") / self.fields["expert_d_ff"]
            self.put("shared_experts", round(shared), f"{self.file}: shared_expert_intermediate_size / expert width")
        if dense := self.config.get("mlp_only_layers"):
            self.notes.append(f"mlp_only_layers {plain(dense, 60)} are taken as expert layers")

    def _read_window(self) -> None:
        if not self.config.get("use_sliding_window", self.family.windowed) or "sliding_window" not in self.fields:
            self.fields.pop("sliding_window", None)
            return
        kinds = self.config.get("layer_types")
        if isinstance(kinds, list) and kinds:
            every = _period(kinds)
            if every is None and "full_attention" in kinds:
                self.notes.append("layer_types follow no period; all layers are taken as local")
            elif every is not None:
                self.put("global_layer_every", every, f"{self.file}: layer_types")
        elif self.config.get("sliding_window_pattern"):
            every = self._count("sliding_window_pattern")
            self.put("global_layer_every", every, f"{self.file}: sliding_window_pattern")
        else:
            self.derive("global_layer_every", self.family.full_attention_every)

    def _model_type(self) -> str:
        kind = self.config.get("model_type")
        if isinstance(kind, str) and _OTHER_NAMES.get(kind, kind) in FAMILIES:
            return _OTHER_NAMES.get(kind, kind)
        if kind is not None and not isinstance(kind, str):
            raise ConfigError(f"model_type must be a word, not {plain(repr(kind), 40)}", where=self.place)
        name = plain(kind, 40) if kind else "(none)"
        near = difflib.get_close_matches(name, FAMILIES, n=3, cutoff=0.4) or sorted(FAMILIES)
        reason = f"model_type {name} is not a decoder that is read"
        raise ConfigError(reason, where=self.place, hint=f"nearest: {', '.join(near)}")

    def _count(self, key: str) -> int:
        value = self.config[key]
        try:
            return whole_number(None if isinstance(value, str) else value)
        except ValueError as error:
            raise ConfigError(f"{key} must be {error}, not {plain(repr(value), 40)}", where=self.place) from error


def _period(kinds: list[Any]) -> int | None:
    """After how many layers full attention comes back; ``None`` if it does not, or not regularly."""
    full = [number for number, kind in enumerate(kinds, 1) if kind == "full_attention"]
    every = full[0] if full else None
    return every if every and full == list(range(every, len(kinds) + 1, every)) else None


_NAMED = {kind: re.compile(rf"(?:^|_)(?:{names})(?=_|$)") for kind, names in _TABLE["kinds"].items()}


def other_kind(name: str) -> str | None:
    """What a model is that by its name is no decoder with attention; ``None`` where its name does not say so.

    Args:
        name: as a hub or a path has it; the last part counts.
    """
    last = re.sub(r"[\W_]+", "_", name.rstrip("/").rpartition("/")[2].casefold())
    return next((kind for kind, named in _NAMED.items() if named.search(last)), None)


NO_MODEL = f"the model is not said: add model=NAME (such as llama3.1-8b), or {SHAPES}"
_CACHED = re.compile(r"(?:^|/)models--([\w.-]+?)--([\w.-]+)(?:/|$)")
_POINT = "___"
"""What ModelScope's cache has for a point in a name: ``Qwen2___5-7B``."""
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
    if known is None and (kind := other_kind(name)) is not None:
        reason = f"the model {shown} is by its name {kind}, which is not modelled"
        raise ConfigError(reason, hint="add model=NAME if it is a decoder with attention after all")
    if known is None and (base := find_base(name)) is not None:
        note = f"the model {shown} is taken to have the shapes of {base.name}: add model=NAME if it has others"
        return base.model_copy(update={"name": shown}), (note,)
    if known is None:
        ask = f"add model=NAME of one that is (such as llama3.1-8b), or {SHAPES}"
        more = (f"{shown} reads more than text; only its language model is read",)
        note = f"the model {shown} is not in the catalogue: {ask}"
        return Architecture(name=shown), (note, *(more if _MORE_THAN_TEXT.search(name) else ()))
    known = known.model_copy(update={"name": shown})
    if _MORE_THAN_TEXT.search(name):
        return known, (f"{shown} reads more than text; only its language model is read",)
    return known, ()
