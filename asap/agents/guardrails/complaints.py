"""What is wrong with the words of a language model: figures, directions, citations, repeated instructions."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from asap.agents.guardrails.faults import Fault, find_faults
from asap.agents.guardrails.grounding import GroundedValue, resolve
from asap.agents.guardrails.instructions import repeats_instructions
from asap.agents.guardrails.prose.figures import CITATION, figures, normal
from asap.agents.guardrails.transcript import Transcript
from asap.core.secrets import redacted
from asap.core.text import plain

LONGEST = 1200
REMOVED = "[removed]"


class Complaint(BaseModel):
    """What is wrong with a paragraph, why, and what would be right."""

    model_config = ConfigDict(frozen=True)

    paragraph: str
    what: str
    why: str
    right: str


def complaints(
    paragraph: str, prose: str, transcript: Transcript, instructions: Sequence[str] = (), about: str | None = None
) -> list[Complaint]:
    """Everything that is wrong with a paragraph.

    Args:
        paragraph: what to call it.
        prose: its words.
        transcript: answers of the tools.
        instructions: texts that must not be repeated.
        about: the plan that it is about.
    """
    found = [_bad_citation(paragraph, name) for name in CITATION.findall(prose) if name not in transcript.sources]
    found += [
        Complaint(paragraph=paragraph, what=fault.text, why=fault.why, right=fault.right)
        for fault in _faults(prose, transcript, about)
    ]
    if repeats_instructions(prose, instructions):
        why, right = "it repeats the instructions of an agent", "write only about the run"
        found.append(Complaint(paragraph=paragraph, what="the paragraph", why=why, right=right))
    return found


def mentions_any(prose: str, transcript: Transcript, known: Sequence[GroundedValue]) -> bool:
    """Whether the words name at least one of these values."""
    return any(resolve(figure, known) is not None for figure in figures(prose, transcript.names))


def remove_unverified(
    prose: str, transcript: Transcript, instructions: Sequence[str] = (), about: str | None = None
) -> str:
    """The words without what does not resolve; a paragraph that repeats instructions is dropped."""
    if repeats_instructions(prose, instructions):
        return ""
    prose = CITATION.sub(lambda found: found.group() if found.group(1) in transcript.sources else REMOVED, prose)
    while wrong := _faults(prose, transcript, about):
        for fault in reversed(wrong):
            prose = prose[: fault.start] + REMOVED + prose[fault.end :]
    return prose


def sanitize(prose: str) -> str:
    """One line with plain digits, without control characters and secrets, truncated."""
    return plain(redacted(normal(prose)), LONGEST)


def _faults(prose: str, transcript: Transcript, about: str | None) -> list[Fault]:
    """Every figure and every direction that does not resolve, in order."""
    return find_faults(prose, transcript.names, _usable(prose, transcript), transcript.setting(about))


def _usable(prose: str, transcript: Transcript) -> list[GroundedValue]:
    cited = (transcript.sources.get(name, []) for name in CITATION.findall(prose))
    return [*transcript.values, *(known for values in cited for known in values)]


def _bad_citation(paragraph: str, name: str) -> Complaint:
    why, right = "no tool of this session returned a note or a record of that ID", "cite an ID that a search returned"
    return Complaint(paragraph=paragraph, what=f"[{name}]", why=why, right=right)
