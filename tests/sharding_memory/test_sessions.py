import json

import pytest

from asap.core.errors import NotFoundError
from asap.sharding_memory import Kind, Worklog, export_session, read_session, sessions, verify_session


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


def test_hostile_text_stays_inside_its_block_of_the_markdown_export(tmp_path):
    Worklog("s", tmp_path).append(Kind.USER_INPUT, "```\n# pwned\n@everyone <b>\x1b[31m‮")
    text = export_session("s", "markdown", tmp_path)
    fences = [line for line in text.splitlines() if line.startswith("```")]
    assert fences == ["```json", "```"]
    assert text.isascii()
    assert "\x1b" not in text


def test_the_markdown_export_of_a_damaged_session_says_so(tmp_path):
    log = Worklog("s", tmp_path)
    log.append(Kind.NOTE, "kept")
    with log.path.open("ab") as stream:
        stream.write(b'{"half')
    text = export_session("s", "markdown", tmp_path)
    assert "damaged" in text
    assert "kept" in text
