"""How the work of a step divides over the parts of the model: attention, experts or MLPs, and the logits."""

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.throughput import model_flops_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.completeness import is_complete, missing
from asap.chat.scenario.scenario import predict_scenario, scenario_of
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent, format_seconds
from asap.models import Architecture, count_parameters
from asap.prediction.prediction import Prediction

_FLOPS_PER_PARAMETER = 6
"""Of a token, forward and backward (Kaplan et al., arXiv:2001.08361, section 2.1)."""
_PROJECTIONS, SCORES = "attention projections", "attention scores"


def components(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named, else of what runs now.

    Raises:
        InsufficientEvidenceError: the plan, the architecture or the workload is not known.
    """
    study = conversation.study
    named = next(iter(question.plans), study.plan)
    model = study.experiment.model
    if named is None or model is None or not is_complete(study):
        lacking = "the current plan" if named is None else missing(study)
        raise InsufficientEvidenceError(f"that takes {lacking}", where=conversation.id, hint="--config FILE")
    if question.change.empty:
        found = prediction_of(conversation, whole(conversation, named))
    else:
        scenario = scenario_of(study, question.change, whole(conversation, named))
        study, found = scenario.study, predict_scenario(scenario)
        answer.add(f"With {' and '.join(scenario.changes)}:")
    model = study.experiment.model or model
    shares = flops_shares(model, study.experiment.workload.tokens or 0, model_flops_of(study, found) or 1.0)
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    answer.focus = found.plan
    answer.add(f"The model's FLOPs: {', '.join(f'{name} {format_percent(share)}' for name, share in ordered)}.")
    answer.add(*_times(found, shares))
    answer.add("That follows from the architecture and is not measured: a profile shows the operations themselves.")


def flops_shares(model: Architecture, tokens: int, flops: float) -> dict[str, float]:
    """Shares of the FLOPs of a step of so many tokens; attention's scores are what the weights leave."""
    counted = count_parameters(model)
    routed = counted.active_experts + counted.shared_experts
    weights = {
        _PROJECTIONS: (counted.dense_layers + counted.moe_layers) * counted.attention,
        "experts": counted.moe_layers * routed * counted.expert,
        "MLP": counted.dense_layers * counted.mlp,
        "logits": (model.vocab or 0) * (model.d_model or 0),
    }
    shares = {name: _FLOPS_PER_PARAMETER * count * tokens / flops for name, count in weights.items() if count}
    return shares | {SCORES: 1 - sum(shares.values())}


def _times(found: Prediction, shares: dict[str, float]) -> list[str]:
    """The compute of a step in the same proportions, and the collectives of experts and of tensor parallelism."""
    if found.step_time is None:
        return []
    step = found.step_time.value
    compute = sum(part.exposed_s for part in found.parts if part.name == "compute")
    of_attention = shares[_PROJECTIONS] + shares[SCORES]
    of_mlp = shares.get("experts", 0.0) + shares.get("MLP", 0.0)
    name = "the experts" if "experts" in shares else "the MLPs"
    lines = [
        f"Compute is {format_seconds(compute)} of a step of {format_seconds(step)} (modelled); at one rate for all,"
        f" {name} take {format_seconds(of_mlp * compute)} and attention {format_seconds(of_attention * compute)}."
    ]
    exchange = sum(part.exposed_s for part in found.parts if part.axis == "expert")
    if exchange:
        lines.append(f"Sending tokens to experts and back adds {format_seconds(exchange)} (modelled).")
    return lines
