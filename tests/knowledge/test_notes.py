import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import BadInputError, NotFoundError
from asap.core.files import data_folder
from asap.knowledge.notes.chunking import slug
from asap.knowledge.notes.note_files import load_notes, parse_notes
from tests.cases import cases, kept

FRONT = "---\nwork: The Book\nchapter: training\nurl: https://example.org/training/\n---\n# Training\n\n"
NOTE = kept(__file__)["NOTE"]


def test_reads_every_part_of_a_note():
    (note,) = parse_notes(FRONT + NOTE, "training.md")
    assert (note.id, note.title) == ("fsdp-critical-batch", "FSDP stays compute-bound above C over W")
    assert note.keywords == ("FSDP", "ZeRO-3", "critical batch")
    assert note.body == "Weights are gathered just in time.\n\nA second paragraph."
    assert (note.equation, note.applies) == ("B / X > C / W_ici", "Large batches.")
    assert (note.limits, note.worked_number) == ("Decode.", "850 tokens a chip on v5p.")
    assert note.citation.place == "training#fully-sharded-data-parallelism-fsdp"
    assert note.citation.url == "https://example.org/training/#fully-sharded-data-parallelism-fsdp"
    assert note.origin == "bundled"


def test_a_note_may_cite_another_work():
    other = NOTE.replace("keywords:", "work: A Paper\nurl: https://arxiv.org/abs/2205.05198\nkeywords:")
    (note,) = parse_notes(FRONT + other, "training.md")
    assert (note.citation.work, note.citation.url) == ("A Paper", "https://arxiv.org/abs/2205.05198")


@cases("field, line")
def test_a_missing_field_is_named_with_file_and_line(field, line):
    broken = re.sub(rf"^{field}:.*\n", "", NOTE, flags=re.M)
    with pytest.raises(BadInputError, match=rf"training\.md:{line}: the note has no {field}"):
        parse_notes(FRONT + broken, "training.md")


@pytest.mark.parametrize("field", ["work", "chapter", "url"])
def test_front_matter_without_a_citation_is_refused(field):
    broken = re.sub(rf"^{field}:.*\n", "", FRONT, flags=re.M)
    with pytest.raises(BadInputError, match=rf"training\.md:4: the front matter has no {field}"):
        parse_notes(broken + NOTE, "training.md")


@pytest.mark.parametrize(("text", "complaint"), [
    ("", "training.md:1: has no front matter"), ("---\nwork: a\n", "training.md:1: the front matter has no end"),
    ("---\ntitle: a\n---\n", "training.md:2: the front matter cannot have 'title'"),
    (FRONT + "stray\n" + NOTE, "training.md:8: stands before the first note"),
    (FRONT + NOTE + "wrapped on\n", "training.md:21: stands after the note's Equation line"),
    (FRONT + NOTE + "Applies: twice\n", "training.md:21: Applies is given twice"),
    (FRONT + NOTE.replace("id: fsdp-critical-batch", "id: FSDP batch"), "'FSDP batch' is not an ID"),
    (FRONT + NOTE.replace("section:", "id: again\nsection:"), "training.md:10: id is given twice"),
    (FRONT + NOTE.replace("Weights are gathered just in time.\n\nA second paragraph.", ""), "the note has no body"),
])  # fmt: skip
def test_what_is_malformed_is_refused_with_its_place(text, complaint):
    with pytest.raises(BadInputError, match=re.escape(complaint)):
        parse_notes(text, "training.md")


def test_an_id_is_taken_once_over_all_files(tmp_path):
    for name in ("a.md", "b.md"):
        tmp_path.joinpath(name).write_text(FRONT + NOTE)
    with pytest.raises(BadInputError, match=r"b\.md:8: the ID fsdp-critical-batch is taken by a\.md:8"):
        load_notes(tmp_path)


def test_a_folder_without_notes_is_an_error(tmp_path):
    with pytest.raises(NotFoundError):
        load_notes(tmp_path)


LINE = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=60).map(
    lambda text: " ".join(text.split())
)
PLAIN = LINE.filter(lambda text: text and not re.match(r"#|---|[\w ]+:", text))


@given(title=PLAIN, body=st.lists(PLAIN, min_size=1), tail=st.lists(LINE.filter(bool), min_size=4, max_size=4))
def test_what_is_written_is_what_is_read(title, body, tail):
    lines = dict(zip(("Equation", "Applies", "Does not apply", "Worked number"), tail, strict=True))
    written = f"## {title}\nid: a-b\nsection: S\nkeywords: k\n\n" + "\n".join(body) + "\n\n"
    written += "".join(f"{key}: {value}\n" for key, value in lines.items())
    (note,) = parse_notes(FRONT + written, "x.md")
    assert note.title == title
    assert note.body.splitlines() == body
    assert [note.equation, note.applies, note.limits, note.worked_number] == tail


def test_the_bundled_notes_keep_their_promises():
    notes = load_notes(data_folder("knowledge"))
    assert len(notes) >= 200
    for note in notes:
        parts = (note.body, note.equation, note.applies, note.limits, note.worked_number)
        assert 80 <= len(" ".join(filter(None, parts)).split()) <= 250, note.id
        assert note.citation.url.startswith("https://"), note.id
        assert note.citation.anchor == slug(note.citation.section), note.id
        assert 3 <= len(note.keywords) <= 12, note.id
