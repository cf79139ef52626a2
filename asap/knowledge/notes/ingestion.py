"""Ingest a Markdown file or folder as quoted material: read it once into chunks under a name."""

import re
from collections.abc import Iterator
from pathlib import Path

from asap.core.errors import BadInputError, NotFoundError
from asap.core.files import exists, user_path
from asap.core.secrets import redacted
from asap.knowledge.notes.chunking import Chunk, chunk_markdown
from asap.knowledge.notes.ingested import Ingested, checked_name, write_ingested
from asap.knowledge.notes.note import Note, NoteSource

_SUFFIXES = (".md", ".markdown")
_LARGEST = 8 * 2**20
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
