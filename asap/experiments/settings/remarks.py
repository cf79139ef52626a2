"""Notes on settings: what is left open, what no prediction uses, what only a fork has, which optimizer a name means."""

import re
from collections.abc import Collection, Iterable, Mapping

from asap.core.text import plain
from asap.stacks.deepspeed.settings import MICRO_BATCH
from asap.stacks.reading import is_on
from asap.stacks.spec import Spec, matches
from asap.stacks.trainer.arguments import TRAINER_MICRO_BATCH

NO_BATCH = "the batch is not said"
_BATCH = "workload.global_batch"


def no_batch(keys: Iterable[str]) -> str:
    """The note on a batch that hangs on settings, by what a command says them as."""
    asked = " and ".join(f"{key}=…" for key in keys)
    return f"{NO_BATCH}: add {asked}, or --batch N"


def in_words_of_program(notes: Iterable[str]) -> tuple[str, ...]:
    """Notes on DeepSpeed's settings in the words of a program with the Trainer's arguments."""
    return tuple(
        note.replace(MICRO_BATCH, TRAINER_MICRO_BATCH) if note.startswith(NO_BATCH) else note for note in notes
    )


def still_open(notes: Iterable[str], said: Collection[str]) -> tuple[str, ...]:
    """Notes without those that ask for a field of the record which was said since."""

    def answered(note: str) -> bool:
        return any(f": add {field}=" in note for field in said) or (_BATCH in said and note.startswith(NO_BATCH))

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
        keys = [key for key, value in usual.items() if key in settings and _differs(settings[key], value)]
        if shown := ", ".join(key if settings[key] is True else f"{key}={plain(settings[key], 40)}" for key in keys):
            found.append(f"{shown} (likely {likely})")
    return (f"the prediction does not use {', '.join(found)}",) if found else ()


def _differs(said: object, usual: object) -> bool:
    text = str(said).casefold()
    if text in _OFF and (usual is False or text in ("none", "null", "auto", "")):
        return False
    try:
        return float(text) != float(str(usual))
    except ValueError:
        return usual is False or text != str(usual).casefold()


_GATHERED = "weights that stay gathered until the backward pass are not modelled: taken as gathered twice"
_KEEPS_GATHERED = ("shard_grad_op", "_hybrid_shard_zero2")


def table_notes(spec: Spec, settings: Mapping[str, object], sequence: int | None) -> tuple[str, ...]:
    """What a reader should know of settings by their table: what no prediction uses, and what is read otherwise."""
    off = ("false", "none", "null", "0", "")
    found = list(note_on_unmodelled(settings, spec.unmodelled))
    if spec.axes.strategy and spec.axes.strategy.said(settings) in _KEEPS_GATHERED:
        found.append(_GATHERED)
    if spec.cut and sequence and not any(is_on(settings, key) for key in spec.packed):
        found.append(f"sequences are cut at {sequence} tokens ({spec.cut.key(settings)}); all are taken as that long")
    for note in spec.notes:
        if any(str(settings.get(key, "")).casefold() not in off for key in note.unless):
            continue
        said = [str(value).casefold() for key, value in settings.items() if matches(note.keys, key)]
        if any(value in note.only if note.only else value not in off for value in said):
            found.append(note.text)
    return tuple(found)


_SHAPES = re.compile(
    r"(?:^|_)(?:experts?|heads?|hidden|ffn|intermediate|latent|lora|dense|window|depth|width|layers?|freeze|frozen|only)(?:_|$)"
)
_RECOMPUTES = re.compile(r"recompute|(?:^|_)(?:swap|offload)_(?:attention|modules?|activations?)(?:_|$)")


def decides(key: str) -> bool:
    """Whether a setting by its name decides the model, or what is recomputed."""
    return _SHAPES.search(key) is not None or recomputes(key)


def recomputes(key: str) -> bool:
    """Whether a setting by its name says what is recomputed, or kept in host memory."""
    return _RECOMPUTES.search(key) is not None


_FAMILY = re.compile(r"adamw|adafactor|adam|lion|muon|sgd")
_WITH_BITS = re.compile(r"adam\w{0,40}?_?(32|8|4)bit$")
_OF_BITS = {"32": "fp32", "8": "int8", "4": "fp4"}
_PAGED = "paged"
_KEY = re.compile(r"(?:^|\.)optim(?:izer)?(?:$|[._](?:name|type|_component_|class_path)$)")


def optimizer_family(name: str | None) -> str:
    """``paged_adamw_8bit`` → ``adamw``, which is the default; a name of no family stays."""
    said = (name or "adamw").casefold()
    found = _FAMILY.search(said)
    return found[0] if found else said


def moments_of_bits(name: str | None) -> dict[str, str]:
    """The precision of Adam's moments as fields of a workload, where the name says one, whatever weights have.

    Wide moments that are paged are left open: how much of them HBM holds, only a run can tell.
    """
    said = (name or "").casefold().replace("_bnb_", "_")
    found = _WITH_BITS.search(said)
    kept = _OF_BITS[found[1]] if found and not (found[1] == "32" and _PAGED in said) else None
    return {"first_moment_precision": kept, "second_moment_precision": kept} if kept else {}


def note_on_paged(settings: Mapping[str, object]) -> tuple[str, ...]:
    """A note that an optimizer moves its state to the host where HBM is full; none where none does."""
    named = [value for key, value in settings.items() if isinstance(value, str) and _KEY.search(str(key))]
    paged = next((name for name in named if _PAGED in name.casefold()), None)
    said = "what HBM has no room for of its state waits in host memory, which is not modelled"
    return (f"optimizer {plain(paged, 60)}: {said}",) if paged else ()
