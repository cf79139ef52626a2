"""Megatron's sequence parallelism: whether a run has it, and what it changes in time and HBM."""

from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.plans import Plan
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.study.changed import without_step_time

_STATE = {True: "on", False: "off", None: "not on record"}


def sequence_parallelism(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named, else of what runs now.

    Raises:
        InsufficientEvidenceError: the plan is not known, or nothing can be predicted.
    """
    study = conversation.study
    named = next(iter(question.plans), study.plan)
    if named is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id, hint="--plan PLAN")
    plan = whole(conversation, named)
    answer.focus, degree = plan, plan.degree("model")
    answer.add(
        f"Sequence parallelism is {_STATE[study.experiment.workload.sequence_parallel]}: it splits the activations"
        f" between the matmuls along the tensor axis (model={degree}); splitting the sequence itself is context"
        " parallelism (seq)."
    )
    if degree == 1:
        answer.add(f"Without tensor parallelism, as in {plan}, it changes nothing.")
        return
    for on in (True, False):
        found = _with(conversation, plan, on)
        answer.add(f"- {plan} {'with' if on else 'without'} it: {figures_of(found)}")
        answer.add_figure(f"{plan} {'with' if on else 'without'} it: step time", found.step_time)


def _with(conversation: Conversation, plan: Plan, on: bool) -> Prediction:
    study = conversation.study
    workload = study.experiment.workload.model_copy(update={"sequence_parallel": on})
    changed = without_step_time(study, study.experiment.model_copy(update={"workload": workload}))
    return expect(changed, [plan])[0]
