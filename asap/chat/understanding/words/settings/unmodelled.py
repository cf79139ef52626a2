"""Techniques that engineers name and that nothing here can vary."""

import re

from asap.chat.understanding.words.questions import is_question

_OVERLAPPED = r"(?:grad(?:ient)?|param(?:eter)?)"
_TENSOR = r"(?:tp|tensor(?:[- ]parallel\w*)?)"
_DISTRIBUTED = r"dist(?:ributed)?[- ]opt\w*"
_KNOWN: tuple[tuple[str, str], ...] = (
    (r"etp|expert[- ]tensor[- ]parallel\w*", "tensor parallelism of the experts alone (ETP)"),
    (r"loss[- ]parallel\w*|(?:vocab\w*|parallel)[- ]parallel loss", "a loss over split vocabulary as a switch"),
    (r"zero[- ]?bubble|dual-?pipe\w*|zb(?:-?h?[12v])?", "zero-bubble schedules of a pipeline"),
    (r"cuda[- ]?graphs?", "CUDA graphs"),
    (r"async(?:hronous)?[- ](?:tp|tensor[- ]parallel\w*)", "asynchronous tensor parallelism"),
    (r"deep-?ep|hybrid-?ep", "DeepEP's all-to-all"),
    (
        r"liger(?:[- ]kernels?)?|(?:cut|fused(?:[- ]linear)?)[- ]cross[- ]?entropy|fused[- ]loss|flce",
        "a fused linear cross-entropy",
    ),
    (r"(?:flash|fused|eager|cudnn)[- ]?att(?:entio)?n\w*|sdpa|fa[234]", "a fused attention kernel"),
    (r"grouped[- ]?gemms?", "grouped matrix products of the experts as a switch"),
    (r"torch[. ]compile|inductor|(?:without|no|skip\w*|disabl\w+|turn\w* off) (?:the )?"
     r"compil(?:e|ing|ation)(?! (?:cache|error|time))"
     r"|compile(?=(?: is| was)?(?: already)? (?:on|enabled|active|in use)(?![\w-]))"
     r"|(?:we|already|running|runs?|train\w*)(?: already)? (?:with |use |using )?compil(?:e|ed|ing)"
     r"(?= ?(?:already\b|\W*$))",
     "torch.compile"),
    (r"(?:fp32|bf16|fp16|float32) (?:grad(?:ient)?s? )?(?:all-?reduc\w*|reduce[- ]?scatter\w*"
     r"|reduc(?:e|es|ed|tions?)|accumulation)"
     r"|grad(?:ient)?s? (?:all-?reduc\w*|reduction|reduce[- ]?scatter|accumulation)"
     r"(?: (?:in|at|precision|dtype))? (?:fp32|bf16|fp16)"
     r"|(?:all-?reduce|reduce(?:[- ]?scatters?)?) (?:(?:the )?grad(?:ient)?s? )?in (?:fp32|bf16|fp16)"
     r"|(?:fp32|bf16|fp16|float32|half) grad(?:ient)?s?(?! acc)|grad(?:ient)?s? in (?:fp32|bf16|fp16)",
     "the precision in which gradients are summed"),
    (r"sharp|nvls|nccl[_ ](?:algo\w*|proto\w*|tree|ring|ll128|tuning|channels?)", "algorithms of NCCL"),
    (r"reshard[_ ]after[_ ]forward", "reshard_after_forward"),
    (rf"{_TENSOR}[-_ ](?:comm\w*[-_ ])?overlap\w*|overlapp?\w*[- ](?:the |of )?{_TENSOR}(?:[- ]\w+)?|user[- ]buffers?",
     "overlap of tensor collectives"),
    (rf"{_OVERLAPPED}[- ](?:comm\w*[- ])?overlap\w*|overlap[-_](?:grad|param)[-_]\w+",
     "switches that overlap communication"),
    (rf"overlapp?\w*[- ](?:the |of )?{_OVERLAPPED}\w*(?:[- ]\w+)?", "switches that overlap communication"),
    (r"(?:2|2\.5|3)d[- ](?:tp|tensor\w*)(?:[- ]parallel\w*)?", "tensor parallelism over two dimensions"),
    (r"(?:mov\w+|switch\w*|migrat\w+|port\w*|chang\w+|go\w*) (?:\w+ ){0,2}?(?:to|over to) "
     r"(?:torchtitan|megatron\S*|nemo|maxtext|deepspeed|nanotron|axolotl|pytorch|torch|jax|axlearn|levanter|colossal\w*)",
     "another training framework"),
    (r"imbalanc\w+|load[- ]balanc\w+|straggl\w+", "uneven load of experts or devices"),
    (rf"{_DISTRIBUTED} (?:off|on)|(?:turn\w* (?:off|on)|without|disabl\w+|no) (?:the )?{_DISTRIBUTED}",
     "the distributed optimizer as a switch"),
    (r"(?:custom|own|hand-?(?:written|rolled|tuned)|pallas|triton|cutlass|fused|special)[- ](?:\w+[- ]){0,3}?kernels?",
     "kernels of your own"),
    (r"(?:router|routing|expert|token)s? (?:skew\w*|hot\w*)|hot experts?|skew\w* (?:routing|experts?)",
     "uneven load of experts or devices"),
    (r"(?:sequence|data|sample|example)[- ]pack\w*|pack(?:ing|ed) (?:of )?(?:sequences|samples|data)|bucketing"
     r"|padding(?! (?:of|to) (?:heads|experts))", "how documents are packed into sequences"),
    (r"(?:q|do|x)?-?lora\w*|peft|adapters?|(?:freez\w+|froze|frozen) "
     r"(?:(?:the|our|some|all|most|of|input|output|first|lower) ){0,3}"
     r"(?:embeddings?|layers?|weights?|backbone|encoder|decoder|param(?:eter)?s?|trunk|model)",
     "training only a part of the weights (LoRA, adapters, frozen layers)"),
    (r"drop-?out|grad(?:ient)?s?[- ]clip\w*|clip\w* (?:the |our )?grad\w*|ema|(?:weight|model)[- ]averag\w+"
     r"|weight[- ]decay|label[- ]smoothing|z-?loss|aux(?:iliary)?[- ]loss\w*",
     "small parts of a step (dropout, clipping, averages of the weights, further losses)"),
    (r"distill\w*|rlhf|grpo|ppo|dpo|preference[- ](?:tuning|optimi[sz]ation)",
     "another training objective"),
    (r"ulysses", "Ulysses' context parallelism apart from others"),
)  # fmt: skip
_TABLE = tuple((re.compile(rf"(?<!\w)(?<!\w-)(?:{words})(?![\w-])", re.I), title) for words, title in _KNOWN)


def unmodelled_in(text: str) -> str | None:
    """What a text names that cannot be varied here; ``None`` if it names nothing of the kind."""
    return next((title for pattern, title in _TABLE if pattern.search(text)), None)


_IN_USE = re.compile(
    r"\b(?:is|are|was|were|have|has|had|got|use|uses|using|run|running|train|enabled?|set|turned|switched)\b[^.?!]*"
    r"\b(?:already|by default|anyway|on)\b|\balready\b[^.?!]*\b(?:on|have|use|using|run|enabled|set|turned|doing|do)\b"
    r"|\balready\s+(?:\w+\s+)?(?:running|training|compil\w+|with)\b|^\W*(?:we|i)\b[^.?!]*\balready\W*$"
    r"|\b(?:on|enabled|active|in use|in place)(?: (?:already|by default|anyway|too))*\W*$"
    r"|\b(?:is|are)\b[^.?!]{0,20}\b(?:enabled|active)\b|\bwe(?:'re| are)? (?:use|run|have|using|running)\b",
    re.I,
)


_DENIED = re.compile(
    r"\bnot\b|n't\b|\b(?:no|off|if|would|turn|switch|put|try|want|get|should|could|can|go|let'?s|what|how)\b", re.I
)


def says_in_use(text: str) -> bool:
    """Whether it says, and does not ask, that something is in use: "we already compile", "cuda graphs are on"."""
    denied = _DENIED.search(text) is not None
    return _IN_USE.search(text) is not None and not is_question(text) and not denied
