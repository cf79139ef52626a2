"""Megatron's sequence parallelism: whether a run has it, and what it changes in time and HBM."""

from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.techniques.technique_worth import plan_in_question, verdict
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.worth import asks_worth
from asap.plans import Plan
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.study.changed import without_step_time

_STATE = {True: "on", False: "off", None: "not on record"}


def sequence_parallelism(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named, else of what runs now; and whether it pays, where that is asked.

    Raises:
        InsufficientEvidenceError: the plan is not known, or nothing can be predicted.
    """
    study = conversation.study
    if not question.plans or asks_worth(question.text):
        plan = plan_in_question(conversation, question)
    else:
        plan = whole(conversation, question.plans[0])
    answer.focus, degree = plan, plan.degree("model")
    answer.add(
        f"Sequence parallelism is {_STATE[study.experiment.workload.sequence_parallel]}: it splits the activations"
        f" between the matmuls along the tensor axis (model={degree}); splitting the sequence itself is context"
        " parallelism (seq)."
    )
    if degree == 1:
        answer.add(f"Without tensor parallelism, as in {plan}, it changes nothing.")
        return
    having, without = (_with(conversation, plan, on) for on in (True, False))
    for found, word in ((having, "with"), (without, "without")):
        answer.add(f"- {plan} {word} it: {figures_of(found)}")
        answer.add_figure(f"{plan} {word} it: step time", found.step_time)
    if asks_worth(question.text):
        answer.add(verdict(having, without))


def _with(conversation: Conversation, plan: Plan, on: bool) -> Prediction:
    study = conversation.study
    workload = study.experiment.workload.model_copy(update={"sequence_parallel": on})
    changed = without_step_time(study, study.experiment.model_copy(update={"workload": workload}))
    return expect(changed, [plan])[0]
