"""The room of the chat stays small, and reads no phrases by patterns."""

from pathlib import Path

import asap.chat

ROOM = Path(asap.chat.__file__).parent
MOST_LINES, MOST_FILES, MOST_PATTERNS = 2500, 25, 12


def test_the_room_keeps_its_budget():
    files = sorted(ROOM.rglob("*.py"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert len(files) <= MOST_FILES
    assert text.count("\n") <= MOST_LINES
    assert text.count("re.compile(") <= MOST_PATTERNS
