"""The fewest chips on which some plan fits: the slice of now halved or doubled until that changes."""

from asap.chat.answers.phrasing import figures_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import scenario_of
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.quantities.things import To
from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import fits

_DOUBLINGS = 4


def fewest_chips(conversation: Conversation, answer: ReplyBuilder) -> None:
    """At the batch of now; raises InsufficientEvidenceError where hardware, plan or HBM is not known."""
    study = conversation.study
    if study.slice is None or study.plan is None:
        raise InsufficientEvidenceError("the hardware or the plan is not known", where=conversation.id)
    now = study.slice.devices
    best = fastest_that_fits(conversation, now)
    larger = (now * 2**power for power in range(1, _DOUBLINGS + 1))
    smaller = (now // 2**power for power in range(1, now.bit_length()))
    count, found = now, best
    for other in smaller if best else larger:
        there = fastest_that_fits(conversation, other)
        if best and there is None:
            break
        count, found = other, there
        if not best and there:
            break
    if found is None:
        answer.add(f"On up to {count} chips no plan is predicted to fit.")
        return
    answer.add(
        f"A plan fits on {count} chips, and none is known to fit on {count // 2} (halved or doubled from {now}; the"
        " batch stays):",
        f"- {found.plan}: {figures_of(found)}",
    )
    answer.add_figure(f"{found.plan} on {count} chips: step time", found.step_time)


def fastest_that_fits(conversation: Conversation, chips: int, batch: int | None = None) -> Prediction | None:
    """The first plan of so many chips that fits, at the batch of now or at another one; ``None`` if none does or no
    slice has so many."""
    counts = [("chips", To(value=chips))] + ([("batch", To(value=batch))] if batch else [])
    try:
        study = conversation.study
        as_it_is = study.slice is not None and chips == study.slice.devices and batch is None
        there = (
            study if as_it_is else scenario_of(study, Change.model_validate({"counts": tuple(sorted(counts))})).study
        )
        ranked = conversation.rank(there)
    except AsapError:
        return None
    found = [one.prediction for one in ranked.candidates if one.prediction.memory and fits(one.prediction)]
    return next(iter(found), None)
