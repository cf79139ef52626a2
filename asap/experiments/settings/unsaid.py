"""Notes that ask for what a configuration leaves open, and that go once it is said."""

from collections.abc import Collection, Iterable

from asap.stacks.deepspeed.settings import MICRO_BATCH
from asap.stacks.deepspeed.trainer import TRAINER_MICRO_BATCH

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
