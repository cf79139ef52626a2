"""A command answered: what was understood, the answer in words, and what was put on record."""

from collections.abc import Iterator
from io import BufferedReader
from typing import get_args

from pydantic import BaseModel, ConfigDict, Field

from asap.answers.figure import Answer
from asap.answers.inquiry import Inquiry
from asap.answers.registry import query
from asap.chat.conversation import Conversation
from asap.chat.language import Command
from asap.chat.written import written
from asap.core.errors import UsageError
from asap.core.text import plain
from asap.core.units import Quantity
from asap.evidence.fact import StatedFact
from asap.plans.axes import Axis
from asap.reports.answers.blocks import figures_of
from asap.reports.answers.forms import to_text


def piped_turns(stream: BufferedReader) -> Iterator[str]:
    """The lines of a pipe as they come."""
    for line in stream:
        text = line.decode("utf-8", "replace").strip()
        if text:
            yield text


class Figure(BaseModel):
    """A figure that a reply shows."""

    model_config = ConfigDict(frozen=True)

    what: str
    quantity: Quantity


class Reply(BaseModel):
    """One answer, as the worklog keeps it."""

    model_config = ConfigDict(frozen=True)

    topic: str = Field(description="the query that was asked, or what else the line was")
    text: str
    understood: str | None = Field(default=None, description="free words as the command that was answered")
    offered: tuple[str, ...] = Field(default=(), description="commands to choose from by number")
    facts: tuple[Figure, ...] = ()
    evidence: tuple[StatedFact, ...] = Field(default=(), description="what this message put on record")
    retracted: tuple[StatedFact, ...] = Field(default=(), description="what this message took off the record")
    changed: bool = Field(default=False, description="whether the order of the proposals is another one now")
    ranking: tuple[str, ...] = Field(default=(), description="the proposals after this message, best first")
    refused: bool = Field(default=False, exclude=True, description="whether the line got an error, no answer")
    on_record: bool = Field(default=False, exclude=True, description="whether the session holds the text already")


def answer(conversation: Conversation, command: Command) -> Reply:
    """The reply to a command that asks a query; raises like :func:`ask`."""
    before, facts = conversation.ranking, conversation.evidence
    return reply_of(conversation, command.name, ask(conversation, command), before, facts)


def reply_of(
    conversation: Conversation, topic: str, found: Answer, before: tuple[str, ...], facts: tuple[StatedFact, ...]
) -> Reply:
    """An answer as a reply, with what changed since."""
    after, now = conversation.ranking, conversation.evidence
    new = tuple(fact for fact in now if fact not in facts)
    text = to_text(found).rstrip("\n")
    forget = "".join(f"\n/forget {conversation.inquiry.number(fact)} takes it back." for fact in new)
    return Reply(
        topic=topic,
        text=f"{text}{forget}",
        facts=tuple(Figure(what=one.id, quantity=one) for one in figures_of(found)),
        evidence=new,
        retracted=tuple(fact for fact in facts if fact not in now and not any(one.supersedes(fact) for one in new)),
        changed=before != after,
        ranking=after,
    )


def ask(conversation: Conversation, command: Command) -> Answer:
    """The answer to a command's query.

    Raises:
        AsapError: what is asked for is not known, cannot be read, or cannot run.
    """
    inquiry, arguments = conversation.inquiry, dict(command.arguments)
    if command.name == "record":
        arguments["words"] = written(command)
    if command.name == "sweep" and "values" not in arguments:
        arguments["values"] = default_values(arguments["vary"], inquiry)
        if not arguments["values"]:
            line = plain(written(command), 60)
            raise UsageError("needs values", where=line, hint=f"{line} 128 256")
    return query(command.name, arguments).answer(inquiry)


_POLICIES = ("none", "minimal", "full")
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_DOUBLINGS = 6


def default_values(vary: str, inquiry: Inquiry) -> tuple[str, ...]:
    """What ``vary`` can be: halves and doubles of now, degrees of an axis, policies; empty where nothing is usual."""
    study = inquiry.study
    work, hardware, plan = study.experiment.workload, study.slice, study.plan
    now = {
        "global_batch": work.global_batch,
        "sequence_length": work.sequence_length,
        "chips": hardware.devices if hardware else None,
    }.get(vary)
    if now:
        return tuple(str(round(now * factor)) for factor in _FACTORS if now * factor >= 1)
    if vary == "slices":
        return ("1", "2", "4", "8")
    if vary == "remat":
        return _POLICIES
    if vary == "precision":
        return ("bf16", "fp8", "int8")
    if vary in ("microbatches", "loss_chunks", "pipeline_repeats"):
        return tuple(str(2**power) for power in range(5))
    if vary in get_args(Axis) and plan is not None:
        return tuple(str(2**power) for power in range(_DOUBLINGS) if 2**power <= plan.devices)
    return ()
