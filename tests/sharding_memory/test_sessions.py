import json

import pytest

from asap.core.errors import NotFoundError, UsageError
from asap.sharding_memory import Kind, Worklog, export_session, read_session, sessions, verify_session
from asap.sharding_memory.selection import selected


def test_sessions_are_listed_and_strangers_ignored(tmp_path):
    assert sessions(tmp_path / "nothing yet") == ()
    Worklog("one", tmp_path).append(Kind.NOTE, 1)
    Worklog("two", tmp_path).append(Kind.NOTE, 2)
    (tmp_path / ".x.jsonl").write_text("")
    assert set(sessions(tmp_path)) == {"one", "two"}


def test_an_unknown_session_is_not_found(tmp_path):
    for look in (read_session, verify_session):
        with pytest.raises(NotFoundError, match="ghost"):
            look("ghost", tmp_path)


def test_the_json_export_holds_everything(tmp_path):
    Worklog("s", tmp_path).append(Kind.TOOL_CALL, {"tool": "kpis"})
    document = json.loads(export_session("s", "json", tmp_path))
    assert document["schema"] == "asap.memory/1"
    assert document["verdict"]["ok"]
    assert document["records"][0]["payload"] == {"tool": "kpis"}
    assert document["verdict"]["head"] == document["records"][0]["checksum"]


def test_the_markdown_export_reads_as_a_dialogue(tmp_path):
    log = Worklog("s", tmp_path)
    log.append(Kind.USER_INPUT, {"text": "does it fit?"})
    log.append(Kind.TOOL_CALL, {"agent": "analyzer", "tool": "health", "arguments": {"experiment": "mine"}})
    log.append(Kind.TOOL_RESULT, {"agent": "analyzer", "tool": "health", "result": {"error": "no profile"}})
    log.append(Kind.RESULT, {"node": "reply", "output": {"text": "It fits.\nBarely."}})
    headings, said = [], []
    for line in export_session("s", "markdown", tmp_path).splitlines():
        (headings if line.startswith("## ") else said).append(line)
    assert [heading.split()[2:] for heading in headings] == [["the", "engineer"], ["analyzer"], ["asap"]]
    assert '    → health(experiment="mine")' in said
    assert any(line.startswith("    ! failed: analyzer: health answers") for line in said)
    assert "    Barely." in said


def test_hostile_text_stays_inside_its_block_of_the_markdown_export(tmp_path):
    log = Worklog("s", tmp_path)
    log.append(Kind.USER_INPUT, "```\n# pwned\n@everyone <b>\x1b[31m‮")
    log.append(Kind.TOOL_CALL, {"agent": "# x\n<b>", "tool": "\n# y", "arguments": {"a": "\n# z"}})
    text = export_session("s", "markdown", tmp_path)
    ours = [line for line in text.splitlines() if line and not line.startswith("    ")]
    assert len(ours) == 4, "a title, the state, and a heading for each speaker"
    assert "<b>" not in "".join(ours)
    assert "\x1b" not in text


def test_records_are_selected_by_who_wrote_them_their_kind_and_failure(tmp_path):
    log = Worklog("s", tmp_path)
    log.append(Kind.TOOL_CALL, {"agent": "analyzer", "tool": "health"})
    log.append(Kind.TOOL_RESULT, {"agent": "analyzer", "tool": "health", "result": {"error": "no profile"}})
    log.append(Kind.RESULT, {"node": "coordinator@1/analyze_experiment@7/check@1", "output": {}})
    log.append(Kind.ERROR, {"where": "run"})
    records = read_session("s", tmp_path)
    assert [r.sequence for r in selected(records, "analyzer")] == [0, 1]
    assert [r.sequence for r in selected(records, "check")] == [2]
    assert [r.sequence for r in selected(records, kinds=["error", "tool_call"])] == [0, 3]
    assert [r.sequence for r in selected(records, failed=True)] == [1, 3]
    with pytest.raises(NotFoundError, match="check"):
        selected(records, "nobody")
    with pytest.raises(UsageError, match="tool_call"):
        selected(records, kinds=["poems"])


def test_the_markdown_export_of_a_damaged_session_says_so(tmp_path):
    log = Worklog("s", tmp_path)
    log.append(Kind.NOTE, "kept")
    with log.path.open("ab") as stream:
        stream.write(b'{"half')
    text = export_session("s", "markdown", tmp_path)
    assert "damaged" in text
    assert "kept" in text
