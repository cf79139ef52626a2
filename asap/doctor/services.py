"""The language model, its key, and the search of notes."""

import os
from collections.abc import Iterator

from asap.agents.llm.preflight import check_model
from asap.agents.settings import read_settings
from asap.core.errors import AsapError
from asap.doctor.check import Check, ok, problem
from asap.knowledge import search_knowledge

KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN")
_QUERY = "FSDP all-gather"


def service_checks() -> Iterator[Check]:
    """Settings, model, keys (whether they are set, never what they are), notes."""
    yield _model()
    yield _keys()
    yield _notes()


def _keys() -> Check:
    found = [name for name in KEYS if os.environ.get(name)]
    return ok("keys", f"set: {', '.join(found)}" if found else "none set; builtin/planner needs none")


def _model() -> Check:
    try:
        settings = read_settings()
        check_model(settings.model)
    except AsapError as error:
        return problem("language model", str(error), error.hint or "asap config set model builtin/planner")
    return ok("language model", settings.model)


def _notes() -> Check:
    """A search through Chroma, local or the server of a team."""
    place = os.environ.get("ASAP_CHROMA_URL", "")
    name = f"Chroma, {place}" if place else "Chroma, local"
    try:
        hits = search_knowledge(_QUERY, 1)
    except AsapError as error:
        return problem(name, str(error), error.hint or "asap knowledge rebuild")
    if not hits:
        return problem(name, "the search finds no note", "asap knowledge rebuild")
    return ok(name, f"finds {hits[0].note.id}")
