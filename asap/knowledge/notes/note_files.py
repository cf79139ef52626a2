"""Notes: one idea in our own words, with its equation, limits, a worked number and a citation; and their files."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.errors import BadInputError, NotFoundError
from asap.knowledge.notes.chunking import slug


class NoteSource(BaseModel):
    """Where an idea comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    work: str
    chapter: str = Field(description="file stem or slug of the chapter")
    section: str
    anchor: str = Field(description="the section's heading as an anchor; empty for the top of a page")
    url: str

    @property
    def place(self) -> str:
        """``chapter#anchor``."""
        return f"{self.chapter}#{self.anchor}"


class Note(BaseModel):
    """One idea that can be cited. Of ingested material only the title, the body and the citation are known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    title: str = Field(description="the idea as a statement; of ingested material its heading path")
    body: str
    equation: str | None = None
    applies: str | None = None
    limits: str | None = Field(default=None, description="when it does not apply")
    worked_number: str | None = None
    keywords: tuple[str, ...] = ()
    citation: NoteSource
    origin: Literal["bundled", "ingested"] = Field(
        default="bundled", description="ingested: written by others, to be quoted and never to be obeyed"
    )


_REQUIRED_FIELDS = ("id", "section", "keywords")
_OVERRIDES = ("work", "chapter", "url")
_TAIL_FIELDS = {
    "Equation": "equation",
    "Applies": "applies",
    "Does not apply": "limits",
    "Worked number": "worked_number",
}
_HEAD = re.compile(r"(id|section|keywords|work|chapter|url):\s*(.*)")
_TAIL = re.compile(r"(Equation|Applies|Does not apply|Worked number):\s*(.*)")
_IDENTIFIER = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_Lines = list[tuple[int, str]]


def load_notes(folder: Path) -> list[Note]:
    """All notes of a folder in the order of file names.

    Raises:
        NotFoundError: there is no note file.
        BadInputError: a note is malformed or its ID is taken, with file and line.
    """
    paths = sorted(folder.glob("*.md"))
    if not paths:
        raise NotFoundError("there are no notes", where=str(folder))
    notes: list[Note] = []
    places: dict[str, str] = {}
    for path in paths:
        for line, note in _parse(path.name, path.read_text(encoding="utf-8")):
            if note.id in places:
                raise _error(path.name, line, f"the ID {note.id} is taken by {places[note.id]}")
            places[note.id] = f"{path.name}:{line}"
            notes.append(note)
    return notes


def parse_notes(text: str, name: str) -> list[Note]:
    """The notes of one file; ``name`` is used in error messages."""
    return [note for _, note in _parse(name, text)]


def _parse(name: str, text: str) -> Iterator[tuple[int, Note]]:
    lines = list(enumerate(text.splitlines(), start=1))
    front, rest = _front_matter(name, lines)
    starts = [i for i, (_, line) in enumerate(rest) if line.startswith("## ")]
    for line, content in rest[: starts[0] if starts else None]:
        if content.strip() and not content.startswith("# "):
            raise _error(name, line, "stands before the first note", "a note starts with a ## heading")
    for start, end in zip(starts, [*starts[1:], len(rest)], strict=True):
        line, heading = rest[start]
        yield line, _note(name, line, heading[3:].strip(), rest[start + 1 : end], front)


def _front_matter(name: str, lines: _Lines) -> tuple[dict[str, str], _Lines]:
    if not lines or lines[0][1].strip() != "---":
        raise _error(name, 1, "has no front matter", "start with --- and the lines work, chapter and url")
    fields: dict[str, str] = {}
    for position, (line, content) in enumerate(lines[1:], start=1):
        if content.strip() == "---":
            for field in _OVERRIDES:
                if not fields.get(field):
                    raise _error(name, line, f"the front matter has no {field}")
            return fields, lines[position + 1 :]
        key, _, value = content.partition(":")
        if key.strip() not in _OVERRIDES:
            raise _error(name, line, f"the front matter cannot have {key.strip()!r}", "work, chapter and url only")
        fields[key.strip()] = value.strip()
    raise _error(name, 1, "the front matter has no end", "close it with ---")


def _note(name: str, line: int, title: str, lines: _Lines, front: dict[str, str]) -> Note:
    head, lines = _head(name, lines)
    tail: dict[str, str] = {}
    body: list[str] = []
    for number, content in lines:
        found = _TAIL.fullmatch(content.strip())
        if found is None:
            if tail and content.strip():
                raise _error(
                    name, number, "stands after the note's Equation line", "each of the four lines is one line"
                )
            body.append(content.rstrip())
        elif found[1] in tail:
            raise _error(name, number, f"{found[1]} is given twice")
        else:
            tail[found[1]] = found[2].strip()
    fields = {**head, **{_TAIL_FIELDS[key]: value for key, value in tail.items()}, "title": title}
    fields["body"] = "\n".join(body).strip()
    labels = {field: key for key, field in _TAIL_FIELDS.items()}
    for field in ("title", "body", *_REQUIRED_FIELDS, *_TAIL_FIELDS.values()):
        if not fields.get(field):
            raise _error(name, line, f"the note has no {labels.get(field, field)}")
    if not _IDENTIFIER.fullmatch(fields["id"]):
        raise _error(name, line, f"{fields['id']!r} is not an ID", "lower-case words and digits joined by hyphens")
    citation = _citation(head, front)
    keywords = tuple(filter(None, map(str.strip, head["keywords"].split(","))))
    known = {key: value for key, value in fields.items() if key in Note.model_fields}
    return Note.model_validate({**known, "keywords": keywords, "citation": citation})


def _head(name: str, lines: _Lines) -> tuple[dict[str, str], _Lines]:
    head: dict[str, str] = {}
    for position, (line, content) in enumerate(lines):
        found = _HEAD.fullmatch(content.strip())
        if found is None:
            return head, lines[position:]
        if found[1] in head:
            raise _error(name, line, f"{found[1]} is given twice")
        head[found[1]] = found[2].strip()
    return head, []


def _citation(head: dict[str, str], front: dict[str, str]) -> NoteSource:
    anchor = slug(head["section"])
    own = head.get("url")
    return NoteSource(
        work=head.get("work") or front["work"],
        chapter=head.get("chapter") or front["chapter"],
        section=head["section"],
        anchor=anchor,
        url=own or f"{front['url']}#{anchor}",
    )


def _error(name: str, line: int, message: str, hint: str | None = None) -> BadInputError:
    return BadInputError(message, where=f"{name}:{line}", hint=hint)
