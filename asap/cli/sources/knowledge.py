"""``asap knowledge``: the principles that proposals cite."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.output import Form, Plain, print_json, print_rows, warn
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.knowledge import Note

app = typer.Typer(no_args_is_help=True, help="Search, show and ingest the notes that proposals cite.")


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="A question, or words of a diagnosis.")],
    top: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of notes to print.")] = 5,
    format: Form = Plain.TERMINAL,
) -> None:
    """Find the notes that are relevant to a question."""
    from asap.knowledge import search_knowledge

    with progress() as stage:
        stage("searching the notes, which are indexed on first use")
        hits = search_knowledge(query, top)
    document = [{"score": h.score, "why": h.why, "note": h.note} for h in hits]
    rows = ((h.score, h.note.id, h.note.title, h.note.citation.place) for h in hits)
    print_rows(format, document, ("score", "ID", "note", "section"), rows)


@app.command()
def show(id: Annotated[str, typer.Argument(help="A note's ID.")], format: Form = Plain.TERMINAL) -> None:
    """Show one note."""
    from asap.knowledge import get_note

    note = get_note(id)
    if format is Plain.JSON:
        print_json(note)
    else:
        _print_note(note)


@app.command("list")
def list_all(format: Form = Plain.TERMINAL) -> None:
    """List all notes, bundled and ingested."""
    from asap.knowledge import list_notes

    notes = list_notes()
    rows = ((n.id, n.title, n.citation.place, n.origin) for n in notes)
    print_rows(format, notes, ("ID", "note", "section", "origin"), rows)


@app.command()
def rebuild() -> None:
    """Rebuild the index from the files."""
    from asap.knowledge import rebuild as rebuild_index

    print(f"indexed {rebuild_index()} notes")


@app.command()
def ingest(
    path: Annotated[Path, typer.Argument(help="Markdown file, or folder of Markdown files.")],
    name: Annotated[str | None, typer.Option(help="Name of the source; by default the name of the path.")] = None,
) -> None:
    """Ingest Markdown as quoted material. Replaces an earlier source of the same name."""
    from asap.knowledge import ingest as ingest_path

    done = ingest_path(path, name)
    for reason in done.skipped:
        warn(f"skipped {reason}")
    print(f"{done.name}: {done.chunks} chunks of {done.documents} documents")


@app.command()
def remove(name: Annotated[str, typer.Argument(help="Name of the source.")]) -> None:
    """Remove an ingested source."""
    from asap.knowledge import remove as remove_name

    remove_name(name)
    print(f"removed {name}")


@app.command()
def evaluate(
    questions: Annotated[Path, typer.Argument(help='JSONL: {"question": …, "anchors": ["chapter#anchor"]}.')],
    format: Form = Plain.TERMINAL,
) -> None:
    """Measure how well the search finds the right section."""
    from asap.knowledge import evaluate as evaluate_file

    scores = evaluate_file(questions)
    print_rows(format, scores, ("measure", "value"), scores.model_dump(exclude={"misses"}).items())
    for miss in scores.misses if format is Plain.TERMINAL else ():
        warn(f"missed: {miss.question} (wanted {', '.join(miss.wanted)}; found {', '.join(miss.found)})")


def _print_note(note: "Note") -> None:
    from asap.core.text import plain

    lines = [
        note.title,
        "",
        *note.body.splitlines(),
        "",
        f"Equation: {note.equation}" if note.equation else "",
        f"Applies: {note.applies}" if note.applies else "",
        f"Does not apply: {note.limits}" if note.limits else "",
        f"Worked number: {note.worked_number}" if note.worked_number else "",
        f"Source: {note.citation.work}, {note.citation.section}, {note.citation.url}",
    ]
    if note.origin == "ingested":
        lines.append("This is ingested material, quoted and unchecked.")
    print("\n".join(plain(line) for line in lines))
