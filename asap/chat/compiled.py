"""A plan compiled by the real TPU compiler; its verdict is evidence."""

from collections.abc import Callable

from asap.chat.conversation import Conversation
from asap.chat.reply import Figure, Reply


def verified(conversation: Conversation, named: str, report: Callable[[str], None]) -> Reply:
    """Compile a plan.

    Raises:
        AsapError: the plan cannot be read, or nothing can be compiled here.
    """
    from asap.compiler.evidence import compiled_evidence
    from asap.compiler.verify import verify

    inquiry, before = conversation.inquiry, conversation.order
    plan = inquiry.plan(named)
    (found,) = verify(conversation.study.experiment, [plan], conversation.compile_options, report)
    new = inquiry.record(compiled_evidence(found))
    lines = [f"{found.plan}: {found.verdict}", *(f"- {line}" for line in (*found.differences, *found.notes))]
    lines += [f"On record: {fact} ({fact.said_by}). /forget {inquiry.number(fact)} takes it back." for fact in new]
    figures = (Figure(what=f"{found.plan}: step time", quantity=found.step_time),) if found.step_time else ()
    after = conversation.order
    return Reply(
        topic="verify", text="\n".join(lines), facts=figures, evidence=new,
        changed=before != after, ranking=tuple(map(str, after)),
    )  # fmt: skip
