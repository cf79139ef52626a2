"""Ingested Markdown as quoted material: read once into chunks under a name, listed, read back and removed."""

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asap.core.errors import BadInputError, NotFoundError, UsageError
from asap.core.files import exists, home, read_json_lines, unwritable, user_path, write_atomically
from asap.core.secrets import redacted
from asap.core.stores import warn_of_store
from asap.core.text import plain
from asap.knowledge.notes.chunking import Chunk, chunk_markdown
from asap.knowledge.notes.note_files import Note, NoteSource

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


_SUFFIXES = (".md", ".markdown")
_LARGEST = 8 * 2**20  # bytes of a file of notes; judgement: what is refused
_JEKYLL = re.compile(r"^(url|baseurl):\s*[\"']?([^\"'#\s]*)", re.M)


def ingest(path: Path, name: str | None = None) -> Ingested:
    """Read a Markdown file or all Markdown of a folder; the same name replaces what was there.

    Raises:
        NotFoundError: there is no such path.
        BadInputError: there is no Markdown in it.
        UsageError: the name cannot be used.
    """
    path = user_path(path).resolve()
    if not exists(path):
        raise NotFoundError("there is no such file or folder", where=str(path))
    name = checked_name(name if name is not None else re.sub(r"[^a-z0-9._-]+", "-", path.stem.lower()).strip("-._"))
    root = path if path.is_dir() else path.parent
    base = _site(root)
    notes: list[Note] = []
    skipped: list[str] = []
    documents = 0
    for file in _markdown_files(path):
        relative = file.relative_to(root)
        try:
            text = _text(file)
        except BadInputError as error:
            skipped.append(f"{relative.as_posix()}: {error.message}")
            continue
        documents += 1
        notes += [_note(name, chunk, relative, base) for chunk in chunk_markdown(redacted(text), relative.stem)]
    if not notes:
        raise BadInputError("has no Markdown that can be read", where=str(path))
    result = Ingested(name=name, path=str(path), documents=documents, chunks=len(notes), skipped=tuple(skipped))
    write_ingested(result, notes)
    return result


def _markdown_files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for file in sorted(path.rglob("*")):
        hidden = any(part.startswith((".", "_")) or part == "node_modules" for part in file.relative_to(path).parts)
        if not hidden and file.suffix.lower() in _SUFFIXES and file.is_file() and not file.is_symlink():
            yield file


def _text(file: Path) -> str:
    if file.stat().st_size > _LARGEST:
        raise BadInputError(f"is larger than {_LARGEST // 2**20} MiB")
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInputError("is not UTF-8") from error
    except OSError as error:
        raise BadInputError(error.strerror or "cannot be read") from error


def _site(root: Path) -> str | None:
    """Where a checkout of a Jekyll site is published, from its ``_config.yml``."""
    try:
        fields = dict(_JEKYLL.findall((root / "_config.yml").read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        return None
    return f"{fields['url'].rstrip('/')}{fields.get('baseurl', '').rstrip('/')}" if fields.get("url") else None


def _note(name: str, chunk: Chunk, relative: Path, base: str | None) -> Note:
    chapter = relative.with_suffix("").as_posix()
    place = f"{name}/{chapter}#{chunk.anchor}"
    page = f"{base}/{chapter}/" if base else f"{name}/{relative.as_posix()}"
    return Note(
        id=f"{place}.{chunk.part + 1}",
        title=" › ".join(chunk.headings),
        body=chunk.text,
        citation=NoteSource(
            work=name,
            chapter=chapter,
            section=chunk.headings[-1],
            anchor=chunk.anchor,
            url=f"{page}#{chunk.anchor}" if chunk.anchor else page,
        ),
        origin="ingested",
    )
