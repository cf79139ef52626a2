"""Record the golden sessions anew, after figures or prompts were changed on purpose.

python -m tests.replay.golden.record. Look at what `asap sessions replay` says parted before you do.
"""

import os
import shutil
import tempfile
from pathlib import Path

from asap.agents.settings import Settings
from asap.agents.workflow.analyze import analyze
from asap.chat import restore
from asap.chat.chat import Chat
from asap.experiments import ExperimentStore
from tests.language_models.scripts import well
from tests.language_models.server import Ask, ModelServer, Question, Say

GOLDEN = Path(__file__).parent
EXPERIMENT = "paper-v6e-16"
LINES = (
    "Which one first?", "I think 3 is better", "/oom 1", "/explain 1", "why not data=8?", "line 1", "health",
)  # fmt: skip


def words(question: Question) -> Say | Ask:
    """A model that argues from the engine's figures, looks something up in the chat, and once invents a figure."""
    if question.agent != "chat":
        return well(question)
    if "ask" not in question.answers:
        return Ask([("ask", {"command": "health"})])
    step = question.answers["ask"]["measured"]
    return Say(f"A step takes {step} now.\nThe first proposal saves 97.3 %.")


def record(session: str, model: str) -> None:
    """One analysis and a chat over it."""
    analyze(EXPERIMENT, store=ExperimentStore(), settings=Settings(model=model), session=session)
    for line in LINES:
        chat = Chat(restore(session, ExperimentStore()), Settings(model=model))
        chat.turn(line, lambda piece: None)


def main(folder: Path = GOLDEN) -> None:
    """Write both sessions."""
    with tempfile.TemporaryDirectory() as home, ModelServer(words) as server:
        os.environ |= {"ASAP_HOME": home, "GOOGLE_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": server.url}
        for session, model in (("golden-builtin", "builtin/planner"), ("golden-gemini", "gemini-2.5-flash")):
            record(session, model)
            shutil.copy(Path(home) / "sessions" / f"{session}.jsonl", folder)


if __name__ == "__main__":
    main()
