"""Notes on what settings leave open, and on what is not modelled."""

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.levers.state import PAGED
from asap.models import Architecture
from asap.models.catalogue import find_architecture, known_architectures
from asap.stacks.reading import is_on
from asap.stacks.registry import spec, table_of
from asap.stacks.rules import Facts, notes
from asap.stacks.spec import Spec

NO_BATCH, NO_PLAN = "the batch is not said", "the plan is unknown"
_BATCH = "workload.global_batch"


def no_batch(keys: Iterable[str]) -> str:
    """The note on a batch that hangs on settings, by what a command says them as."""
    asked = " and ".join(f"{key}=…" for key in keys)
    return f"{NO_BATCH}: add {asked}, or --batch N"


def still_open(notes: Iterable[str], said: Collection[str]) -> tuple[str, ...]:
    """Notes without those that ask for a field of the record which was said since."""

    def answered(note: str) -> bool:
        asked = (f": add {word}" for field in said for word in (f"{field}=", f"--{field}"))
        return any(one in note for one in asked) or (_BATCH in said and note.startswith(NO_BATCH))

    return tuple(note for note in notes if not answered(note))


_OFF = ("", "0", "0.0", "false", "none", "null", "[]", "{}", "auto")


def note_on_unmodelled(
    settings: Mapping[str, object], unmodelled: Mapping[str, Mapping[str, object]]
) -> tuple[str, ...]:
    """One note that names them all; none where all are as the prediction takes them.

    Args:
        settings: by the name that the stack has.
        unmodelled: what settings are likely to bring, and what each is under the prediction; ``False`` stands for
            anything that is off.
    """
    found: list[str] = []
    for likely, usual in unmodelled.items():
        if shown := ", ".join(_unusual(settings, usual)):
            found.append(f"{shown} (likely {likely})")
    return (f"the prediction does not use {', '.join(found)}",) if found else ()


def unmodelled(experiment: Experiment, effect: str) -> tuple[str, ...]:
    """Settings on record that no prediction uses and that likely bring ``longer step`` or ``less HBM``."""
    table, said = table_of(experiment.workload.framework), experiment.hyperparameters
    groups = table.unmodelled.items() if table is not None else ()
    return tuple(one for likely, usual in groups if effect in likely for one in _unusual(said, usual))


def modelled_by_none(experiment: Experiment, settings: Iterable[str]) -> bool:
    """Whether a setting is among those that change a step or its HBM and that no prediction uses."""
    tables = (table_of(experiment.workload.framework), spec("trainer"))
    known = {key for table in tables if table is not None for keys in table.unmodelled.values() for key in keys}
    return any(key in known or key.rpartition(".")[2] in known for key in settings)


_STATED = {"sequence": "sequence_length", "precision": "precision", "attention": "attention"}


def contradicted_causes(experiment: Experiment) -> frozenset[str]:
    """What may not explain a measurement, as a file of the run states otherwise: causes of
    :data:`asap.evidence.readings.CauseName`. What its user says, and a default, may be mistaken."""
    sources = {cause: experiment.provenance.get(f"workload.{field}", "") for cause, field in _STATED.items()}
    stated = {cause for cause, source in sources.items() if ":" in source and "default" not in source}
    table = table_of(experiment.workload.framework)
    said = {key.rpartition(".")[2]: str(value).lower() for key, value in experiment.hyperparameters.items()}
    return frozenset(stated).union(
        cause for cause, keys in (table.rules_out if table is not None else {}).items()
        if any(said.get(key) == str(value).lower() for key, value in keys.items())
    )  # fmt: skip


def _unusual(settings: Mapping[str, object], usual: Mapping[str, object]) -> list[str]:
    keys = [key for key, value in usual.items() if key in settings and _differs(settings[key], value)]
    return [key if settings[key] is True else f"{key}={plain(settings[key], 40)}" for key in keys]


def _differs(said: object, usual: object) -> bool:
    text = str(said).casefold()
    if text in _OFF and (usual is False or text in ("none", "null", "auto", "")):
        return False
    try:
        return float(text) != float(str(usual))
    except ValueError:
        return usual is False or text != str(usual).casefold()


_KEEPSGATHERED = ("shard_grad_op", "_hybrid_shard_zero2")
_GATHERED = "weights that stay gathered until the backward pass are not modelled: taken as gathered twice"


def table_notes(
    spec: Spec, settings: Mapping[str, object], sequence: int | None, facts: Facts = MappingProxyType({})
) -> tuple[str, ...]:
    """What a reader should know of settings by their table: what no prediction uses, and what is read otherwise."""
    found = list(note_on_unmodelled(settings, spec.unmodelled))
    if spec.axes.strategy and spec.axes.strategy.said(settings) in _KEEPSGATHERED:
        found.append(_GATHERED)
    if spec.cut and sequence and not any(is_on(settings, key) for key in spec.packed):
        found.append(f"sequences are cut at {sequence} tokens ({spec.cut.key(settings)}); all are taken as that long")
    return (*found, *notes(spec.rules, facts, settings))


_RECOMPUTES = re.compile(r"recompute|(?:^|_)(?:swap|offload)_(?:attention|modules?|activations?)(?:_|$)")


def recomputes(key: str) -> bool:
    """Whether a setting by its name says what is recomputed, or kept in host memory."""
    return _RECOMPUTES.search(key) is not None


_KEY = re.compile(r"(?:^|\.)optim(?:izer)?(?:$|[._](?:name|type|_component_|class_path)$)")


def note_on_paged(settings: Mapping[str, object]) -> tuple[str, ...]:
    """A note that an optimizer moves its state to the host where HBM is full; none where none does."""
    named = [value for key, value in settings.items() if isinstance(value, str) and _KEY.search(str(key))]
    paged = next((name for name in named if PAGED in name.casefold()), None)
    said = "its moments count as host memory, where they wait if HBM is full; what copies take is not modelled"
    return (f"optimizer {plain(paged, 60)}: {said}",) if paged else ()


USUAL = 51_200  # median of the 163 published models in asap/models/catalogue.jsonl
_OF_VOCABULARY = ("layers", "d_model", "d_ff", "gated_mlp", "heads", "kv_heads", "experts", "expert_d_ff")


def set_vocabulary(experiment: Experiment) -> Experiment:
    """``experiment`` with a vocabulary, and a note that says whose, where nothing else of its model is missing."""
    model = experiment.model
    if model is None or model.missing() != ("vocab",):
        return experiment
    name, tokens = _same_shapes(model)
    if tokens:
        taken = f"the {tokens:,} tokens of {name}, which has these shapes"
    else:
        taken = f"{USUAL:,} tokens, the median of published models"
    note = f"the vocabulary is not stated, and taken as {taken}: model.vocab=N says another"
    known = model.model_copy(update={"vocab": tokens or USUAL, "vocab_assumed": not tokens})
    return experiment.knowing(note, model=known, provenance={"model.vocab": "assumed"})


def _same_shapes(model: Architecture) -> tuple[str, int | None]:
    """A published model of the same shapes, and the vocabulary that most of these have."""
    shapes = model.model_dump(include=set(_OF_VOCABULARY))
    published = (find_architecture(name) for name in known_architectures())
    alike = [one for one in published if one and one.vocab and one.model_dump(include=set(_OF_VOCABULARY)) == shapes]
    if not alike:
        return "", None
    tokens, _ = Counter(one.vocab for one in alike).most_common(1)[0]
    return next(str(one.name) for one in alike if one.vocab == tokens), tokens


_ATTENTION = ("attention", "attn")
_KIND = re.compile(
    r"(?:^|_)(?:attention|attn)(?:_(?:implementation|impl|type|kind|variant|mode|mechanism|method|class|cls|backend|kernel))?$"
)
_PLAIN = frozenset(
    word
    for words in tomllib.loads(Path(__file__).with_name("attention.toml").read_text(encoding="utf-8")).values()
    for word in words
)
_MIXERS = re.compile(
    r"(?:use|enable|with|is)_(?:gated_?)?(?:delta_?net|delta_?rule|gdn|kda|gla|mamba2?|rwkv\d*|retnet|retention|hyena|"
    r"m?lstm|ssm|s4|hgrn2?|lightning|performer|linformer)(?:_layers?)?"
)
"""Switches of what stands in the place of attention."""
_TAKEN = frozenset(("experimental_attention_variant",))
"""Settings of which a reader says itself what it takes them for."""
_ON = ("true", "yes", "on")
_NO_VARIANT = ("", "0", "false", "no", "none", "null", "off", "disabled")
_MOST = 4


def variants_of_attention(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Settings that by their name or value make another attention, as ``key`` or ``key=value``."""
    found: dict[str, None] = {}
    for key, value in settings.items():
        if str(value).casefold() in _NO_VARIANT:
            continue
        sections = str(key).casefold().replace("-", "_").split(".")
        if named := next((one for one in sections if _names_variant(one) or _MIXERS.fullmatch(one)), None):
            found[named] = None
        elif (
            isinstance(value, str)
            and sections[-1] not in _TAKEN
            and _KIND.search(sections[-1])
            and (words := [word for word in re.split(r"[\W_]+", value.casefold()) if word])
            and not any(map(_is_plain, words))
        ):
            found[f"{sections[-1]}={plain(value, 40)}"] = None
    return tuple(plain(one, 80) for one in found)


def note_on_attention(settings: Mapping[str, object]) -> tuple[str, ...]:
    """A note that such attention is left out; none where there is none."""
    found = variants_of_attention(settings)
    if not found:
        return ()
    listed = ", ".join(found[:_MOST]) + (", …" if len(found) > _MOST else "")
    return (f"{listed}: the prediction leaves this attention out, and counts that of a plain decoder",)


def _names_variant(name: str) -> bool:
    words = name.split("_")
    if words[-1] not in _ATTENTION:
        return False
    return any(not _is_plain(word) for word in words[:-1])


def _is_plain(word: str) -> bool:
    bare = word.rstrip("0123456789")
    return not bare or bare in _PLAIN or bare in (*_ATTENTION, *_ON)
