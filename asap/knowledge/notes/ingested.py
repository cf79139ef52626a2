"""What was ingested under each name: listed, read back and removed."""

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asap.core.errors import BadInputError, NotFoundError, UsageError
from asap.core.files import home, unwritable, write_atomically
from asap.core.json_lines import read_json_lines
from asap.core.stores import warn_of_store
from asap.core.text import plain
from asap.knowledge.notes.note import Note

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_CHUNKS = "chunks.jsonl"
_SOURCE = "source.json"


class Ingested(BaseModel):
    """What was ingested under a name."""

    model_config = ConfigDict(frozen=True)

    name: str
    path: str = Field(description="where it was read from")
    documents: int
    chunks: int
    skipped: tuple[str, ...] = Field(default=(), description="files that could not be read, with the reason")


def write_ingested(ingested: Ingested, notes: Sequence[Note]) -> None:
    """Write chunks under their name, replacing what was there.

    Raises:
        BadInputError: the folder cannot be written.
    """
    folder = _folder() / ingested.name
    write_atomically(folder / _CHUNKS, "".join(f"{note.model_dump_json(exclude_none=True)}\n" for note in notes))
    write_atomically(folder / _SOURCE, ingested.model_dump_json(indent=1))


def remove(name: str) -> None:
    """Remove what was ingested under a name.

    Raises:
        NotFoundError: there is nothing.
    """
    folder = _folder() / checked_name(name)
    if not folder.is_dir():
        raise NotFoundError("nothing was ingested under this name", where=name, hint=_known_names())
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise unwritable(folder, error) from error


def checked_name(name: str) -> str:
    """A valid name for ingested documents.

    Raises:
        UsageError: it is not valid.
    """
    if not _NAME.fullmatch(name):
        hint = "lower-case letters, digits, dots, hyphens and underscores, at most 64"
        raise UsageError(f"{plain(name, 60)!r} cannot be a name", where="--name", hint=hint)
    return name


def list_ingested() -> list[Ingested]:
    """What was ingested, by name.

    Raises:
        BadInputError: a source's file is damaged.
    """
    return [_source(path) for path in sorted(_folder().glob(f"*/{_SOURCE}"))]


def chunk_files() -> list[Path]:
    """The files that hold ingested chunks, sorted."""
    return sorted(_folder().glob(f"*/{_CHUNKS}"))


def usable_chunks() -> Iterator[Note]:
    """All chunks that can be read; of a damaged file, those before the damage, with a warning."""
    for path in chunk_files():
        try:
            yield from read_chunks(path)
        except BadInputError as error:
            warn_of_store(f"ingested notes are left out: {error}")


def read_chunks(path: Path) -> Iterator[Note]:
    """The chunks of one file; none if it was just removed.

    Raises:
        BadInputError: a line is damaged, with file and line.
    """
    hint = "ingest it again, or remove it"
    try:
        lines = list(read_json_lines(path))
    except NotFoundError:
        return
    except BadInputError as error:
        raise BadInputError(error.message, where=error.where, hint=hint) from error
    for place, line in lines:
        try:
            yield Note.model_validate_json(line)
        except ValidationError as error:
            raise BadInputError("is not a chunk", where=place, hint=hint) from error


def _folder() -> Path:
    return home() / "knowledge"


def _known_names() -> str:
    names = ", ".join(source.name for source in list_ingested())
    return f"known names: {names}" if names else "nothing was ingested yet"


def _source(path: Path) -> Ingested:
    try:
        return Ingested.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise BadInputError("is damaged", where=str(path), hint="ingest it again, or remove it") from error
