"""Techniques that nothing here can vary: said so, and not taken for other things."""

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.proposals.trials import trials_of

_FUSED_ATTENTION = "a fused attention kernel"
_TRIALS = {
    "CUDA graphs": ("cuda_graphs", "cuda_graphs_of_layers"),
    "torch.compile": ("torch_compile",),
    "overlap of tensor collectives": ("tensor_overlap",),
    _FUSED_ATTENTION: ("fused_attention",),
    "a fused linear cross-entropy": ("fused_loss",),
    "the distributed optimizer as a switch": ("distributed_optimizer",),
    "DeepEP's all-to-all": ("expert_dispatcher",),
}
"""Of these, what is offered for a test."""


def in_use(answer: ReplyBuilder, title: str) -> None:
    """What is said to be in use: part of what runs now, and of the step that is measured."""
    answer.complete = True
    answer.add(
        f"Then {title} is part of what runs now, and no test of it is left. That is no fact which changes a figure, so"
        " nothing is recorded; a measured step includes it:",
        'state one, as in "the baseline takes 2.4 s", and predictions start from it.',
    )


def unmodelled(conversation: Conversation, answer: ReplyBuilder, title: str) -> None:
    """Say that no figure can be given for it, or what is said of it as a test of this run, and what would settle it."""
    answer.complete = True
    offered = (trial for trial in trials_of(conversation.study) if trial.name in _TRIALS.get(title, ()))
    if (trial := next(offered, None)) is not None:
        answer.add(trial.statement, f"To test it: {trial.line}")
        return
    if title == _FUSED_ATTENTION:
        kernel = conversation.study.experiment.workload.attention or "none is on record, and a flash kernel is taken"
        answer.add(
            f"Attention is predicted as it runs ({kernel}); what another kernel brings, a short run with it tells."
        )
        return
    answer.add(
        f"I cannot say what changes with {title}: that is no lever and no axis here, and every figure takes it as it"
        " runs now.",
        'A short run with it would: state what it measures, as in "the baseline takes 2.4 s".',
    )
