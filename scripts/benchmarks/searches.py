"""The indexes of notes and past optimizations: building them, and queries once they are warm."""

from pathlib import Path

from benchmarks.timing import Result, home, median, time_of


def knowledge_build() -> Result:
    """Writing the bundled index anew."""
    with home():
        from asap.knowledge import rebuild

        return {"seconds": time_of(rebuild), "limit_seconds": 5.0}


def knowledge_query() -> Result:
    """A hybrid query over 2,000 notes, then one over 5,000 records, both warm."""
    return _warm_query(2_000, 5_000, 0.010)


def knowledge_query_large() -> Result:
    """A hybrid query over 20,000 ingested chunks, warm."""
    return _warm_query(20_000, 0, 0.050)


def _warm_query(notes: int, records: int, limit: float) -> Result:
    with home() as folder:
        from asap.history import HistoryQuery, list_records, search_history
        from asap.history.files import add_records
        from asap.knowledge import ingest, list_notes, search_knowledge

        source = Path(folder) / "source"
        source.mkdir()
        bundled = list_notes()
        for number in range(max(notes - len(bundled), 0)):
            note = bundled[number % len(bundled)]
            (source / f"note-{number}.md").write_text(f"# {note.title} {number}\n\n{note.body}\n")
        ingest(source, "copies")
        known = list_records()
        copies = [
            record.model_copy(update={"id": f"copy-{n}", "summary": f"{record.summary} ({n})"})
            for n, record in ((n, known[n % len(known)]) for n in range(max(records - len(known), 0)))
        ]
        add_records(copies)
        query = "all-reduce of the tensor axis dominates"
        result: Result = {"seconds": median(lambda: search_knowledge(query)), "limit_seconds": limit}
        if copies:
            asked = HistoryQuery(text=query, chip="v5e", devices=256)
            result["history_seconds"] = median(lambda: search_history(asked))
        return result
