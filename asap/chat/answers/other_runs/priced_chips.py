"""What a step and its tokens cost on several chips, each with its price."""

from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.throughput import HOUR
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import predict_scenario, scenario_of
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import significant
from asap.plans import Plan


def priced_chips(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The plans that are named, else what runs now and the first proposal, on as many of each of the chips.

    Raises:
        InsufficientEvidenceError: plan or architecture is not known.
        NotFoundError: there is no such chip.
    """
    study = conversation.study
    plans = list(question.plans) or [plan for plan in (study.plan, *conversation.order[:1]) if plan is not None]
    if not plans:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id)
    for plan in dict.fromkeys(whole(conversation, plan) for plan in plans):
        answer.add(f"what runs now ({plan}):" if plan == study.plan else f"{plan}:")
        answer.add(*(_row(conversation, answer, plan, chip, price) for chip, price in question.prices.items()))


def _row(conversation: Conversation, answer: ReplyBuilder, plan: Plan, chip: str, price: float) -> str:
    """A plan on as many chips of a kind: its figures, and what a step and a billion tokens cost."""
    study = conversation.study
    own = study.slice is not None and chip == study.slice.chip.name
    scenario = scenario_of(study, Change() if own else Change(hardware=chip), plan)
    found = predict_scenario(scenario)
    where = f"{found.plan.devices} {chip} chips at ${price:g} a chip hour"
    if found.step_time is None:
        return f"- {where}: the step is not predicted"
    answer.add_figure(f"{found.plan} on {chip}: step time", found.step_time)
    hourly = found.plan.devices * price / HOUR
    rate = found.tokens_per_second
    tokens = f", a billion tokens ${significant(hourly * 1e9 / rate.value)}" if rate else ""
    return f"- {where}: a step costs ${significant(hourly * found.step_time.value)}{tokens}; {figures_of(found)}"
