"""Short forms that engineers type, in the words that the rest of the reading knows: "w/o", "ctx", "a2a", "full ac"."""

import re

from asap.chat.understanding.quantities.hardware.network import speaks_of_network

_SHORT: tuple[tuple[str, str], ...] = (
    (r"w/o\b", "without"),
    (r"w/\s?(?=\w|#)", "with "),
    (r"\bw(?=\s+(?:tp|pp|ep|cp|fsdp|dp|remat\w*|fp8|memory|#?\d))|(?<=\w )w(?= [a-z\d#])", "with"),
    (r"\b(what|where|who|how|that|there)s\b", r"\1 is"),
    (r"^(\W*(?:(?:ok|so|and|btw)\W+)*)([1-3])(?= (?:gave|did|got|hit|came in)\b)", r"\1proposal \2"),
    (r"\bp([1-3])\b(?!\s*(?:[=.:]\s*\d|\d|instances?|nodes?|vms?|gpus?))", r"proposal \1"),
    (r"\b(if|whether|because|think|maybe|so|but|and) its\b(?= (?:the|a|an|not|just|only|really|too)\b)", r"\1 it is"),
    (r"^\W*its(?= (?:the|an?|not|just|only|really|too|\d+(?:\.\d+)?\s?[bk]?)\b)", "it is"),
    (r"^(\W*(?:(?:and|so|but|btw|fyi)\W+)*)were(?= (?:on|at|using|running)\b)", r"\1we're"),
    (r"\bhow'?d\b", "how did"),
    (r"\b(what|that|it|who|which)'d\b", r"\1 would"),
    (r"\b(does|is|can|wo|do|did|would|could|should|was|are|has|have)nt\b", r"\1n't"),
    (r"\bcant\b", "can't"),
    (r"\b(i|we|they)d(?=\s+(?:rather|prefer|like|love|hate|say|want|need|go)\b)", r"\1'd"),
    (r"\br (u|we)\b", r"are \1"),
    (r"\bu\b(?!\.)", "you"),
    (r"\bzero[ _-]?(?:stage[ _-]?)?([123])\b", r"zero-\1"),
    (r"\bgimme\b", "give me"),
    (r"\b(?:the )?tl;?dr\b", "summary in one sentence"),
    (r"\bsm?th\b", "something"),
    (
        r"\b(?:minus|sans)(?= (?:the |all )?(?:tp|pp|ep|cp|fsdp|hsdp|dp|v-?pp|remat\w*|recomput\w*"
        r"|offload\w*|accum\w*|interleav\w*|tensor|pipelin\w*|expert|context)\b)",
        "without",
    ),
    (r"\bwdym\b", "what do you mean"),
    (r"\b(?:wtf|wth|tf) is\b", "what is"),
    (r"\benu(?:f+|ff)\b", "enough"),
    (r"\bcmds?\b", "command"),
    (r"\b(gpu|tpu|chip|device)[ -]?hrs?\b", r"\1 hours"),
    (r"\s+(?:on a scale(?:\s+(?:of|from)\s+\d+\s*(?:to|-)\s*\d+)?|out of (?:ten|10))(?=\W*$)", ""),
    (r"\bin (?:ms|secs?|s)(?: or (?:ms|secs?|s))?(?=\W*$)", "in seconds"),
    (r"\bhow come\b(?! you\b)", "why"),
    (r"(?<=\w|%)[\s,.?!]+(?:seriously|srsly|for real|wtf|lo+l|lmao|come on)\W*$", "?"),
    (r"\bur\b", "your"),
    (r"\b(?:cuz|coz|bc)\b", "because"),
    (r"\b(?:pls|plz)\b", "please"),
    (r"\bno\.\s*(?=[1-9]\b)", "number "),
    (r"\bprop\.?\s*(?=[1-9]\b)", "proposal "),
    (
        r"\b(mem(?:ory)?|hbm|compiler|xla|profiler|xprof|nsys|nsight|tensorboard|wandb|nvidia-smi|dcgm|dashboard|console|grafana|mlflow|logs?|monitor\w*)"
        r" (?:says?|said|tells us|claims?)\b",
        r"\1 reports",
    ),
    (r"\b(?:sav|keep|stor)(?:e|es|ing)? (?:some )?more (?:of the |of our )?activations\b", "less rematerialisation"),
    (r"\b(?:recomput|checkpoint|rematerialis)\w* less\b", "less rematerialisation"),
    (r"\bctx\b", "context"),
    (r"\bseq ?lens?\b", "sequence length"),
    (r"\bseq(?= length\b)", "sequence"),
    (r"\bcomms?\b", "communication"),
    (r"\b1f1b\b", "schedule"),
    (r"\b(?:a2a|all[- ]?(?:2|to)[- ]?all)\b", "all-to-all"),
    (r"\btb(?= (?:shows?|says?|has|reports?|gives?|is at|reads?)\b)", "tensorboard"),
    (r"(?<![\w.])(?<!\d )x\s?(\d{1,3}(?:\.\d+)?)\b(?!\s?(?:[x×]|g\b|gb))", r"\1x"),
    (r"(?<=\d)\s*(?:gigabits?|gbits?|gbps)(?:/s(?:ec)?| per second)?\b", "Gb"),
    (r"(?<=\d)\s*gbe\b", "Gb ethernet"),
    (r"\bfdr(?:[- ]?56)?\b", "56Gb InfiniBand"),
    (r"\b(?:edr|hdr[- ]?100)(?:[- ]?100)?\b", "100Gb InfiniBand"),
    (r"\bhdr(?:[- ]?200)?\b", "200Gb InfiniBand"),
    (r"\bndr[- ]?200\b", "200Gb InfiniBand"),
    (r"\bndr(?:[- ]?400)?\b", "400Gb InfiniBand"),
    (r"\bxdr(?:[- ]?800)?\b", "800Gb InfiniBand"),
    (r"(?<=\d)\s*gigs?\b(?=\s+(?:of\s+)?(?:memory|mem|hbm|v?ram)\b)", " GiB"),
    (r"^(\W*(?:(?:and|so)\W+)*(?:mem(?:ory)?|hbm)) (?:ok|okay|fine)(?=\s*\?)", r"\1"),
    (r"\bmem\b", "memory"),
    (r"\b(mfu (?:(?:of|to|at|is|above|over|>=?) )?[1-9]\d(?:\.\d+)?)(?![\w.,%]|\s*(?:%|percent))", r"\1%"),
    (r"\bthru-?put\b", "throughput"),
    (r"\bwps\b", "tps"),
    (r"\btoks?\s?/\s?s(?:ec)?\b", "tokens/s"),
    (r"\bopt(?:im)?(?=\s+states?\b)", "optimizer"),
    (r"\b(full|selective|no|without|disable|drop|off|enable|with) ac\b", r"\1 recomputation"),
    (r"\bsac\b", "selective recomputation"),
    (r"\bac (?=off\b|on\b|full\b|selective\b|none\b)", "recomputation "),
    (r"\b(?:act(?:ivation)?s?|grad(?:ient)?) (?:ckpt\w*|checkpoints?)\b", "activation checkpointing"),
    (r"\bgrad(?:ient)?s?[- ]acc(?:um)?\b", "gradient accumulation"),
    (r"\bckpts?\b", "checkpoint"),
    (r"\bcf(?=\s*(?:of |=|is )?\s*\d)", "capacity factor"),
    (
        r"\b(anything|something|nothing|ones?|plans?|proposals?|options?) (?:that|which) (?:is|are|do|does)(?: not|n't)"
        r" (?:(?:use|using|need|require|have|involve|an?|the) )*",
        r"\1 without ",
    ),
    (r"\bgas\b(?=\s*(?:=|of\b|to\b|at\b|\d))", "gradient accumulation steps"),
    (r"\babt\b", "about"),
    (r"\bteh\b", "the"),
    (r"\bmicro ?bs\b", "micro batch size"),
    (r"\b(?:grad(?:ient)?s?[- ])?accum\b", "gradient accumulation"),
    (r"\b(no|without|with|drop|disable|use|want|need|more|less) ga\b", r"\1 gradient accumulation"),
    (
        r"\b(?:step|item|entry|point|line) #?([1-3]) (?:of|on|in|from) (?:your|the) (?:list|proposals|ranking)\b",
        r"proposal \1",
    ),
    (
        r"(,|\b(?:is|are|was|sounds|seems|looks|feels|smells)(?: (?:that|this|it|total|pure|just))?"
        r"|\b(?:that|this|it)(?:'?s| is)|\btotal|\bpure)\s+bs(?=\W*$)",
        r"\1 bogus",
    ),
    (r"(?<![\w-])bs\b(?!\s*/|\s*per\b)", "batch size"),
    (r"\b([gml]bs|bs)(?=\d)", r"\1 "),
    (r"^(\W*(?:(?:and|so|ok|the|then|hm+)\W+)*)step(?=(?:\s+(?:then|now|there))*\W*$)", r"\1step time"),
    (r"(?<![\w=-])([tpec]p)1(?![\w.,]*\d|\s*[x%])\b", r"\1=1"),
    (r"\bnvm\b", "never mind"),
    (r"\bsr+y\b", "sorry"),
    (r"\bdoes ?nt\b", "doesn't"),
    (r"\bv-?pp(?=\d)", "vpp "),
    (r"(?<=\d )devs?\b", "devices"),
    (r"(\boffload\w*\b[^?]*\b)acts\b", r"\1activations"),
    (r"\boptim\b", "optimizer"),
    (r"\bauto-?tp\b", "tp"),
    (r"\b(40|80) ?gb? a100s?\b", r"a100-\1gb"),
    (r"\b(tensor|pipeline) (?=\d{1,3}\b(?! ?(?:x|%|chips|[gt]pus|stages|cores)))", r"\1 parallelism "),
    (r"(\boffload\w*\b[^?]*\b)opt\b", r"\1optimizer"),
    (r"(?<![\w-])b(?=(?:\d{4,}|512|256|128)\b)", "batch "),
    (r"(?<=\d) ?T(?= (?:run|training|pretrain\w*|job|corpus|dataset)\b)", "T tokens"),
    (r"\bhow come you\b", "why did you"),
    (
        r"\b((?:max\w*|largest|biggest|highest) (?:(?:global|local|micro)[- ]?)?(?:batch(?: size)?|[gml]bs|pdbs)"
        r" (?:at|@|with|for)) (?=\d+ ?k\b(?! ?(?:tok|seq|con|chip|[gt]pu|step)))",
        r"\1 sequence ",
    ),
)  # fmt: skip
_TABLE = tuple((re.compile(pattern, re.I), words) for pattern, words in _SHORT)


_LINKS_BARE = re.compile(r"(?<![\w.])(\d{1,2}\s?x\s?(?:25|50|100|200|400|800))(?![\w.])", re.I)
"""Links of a node by their rate, without its unit."""
_MICROBATCHES = re.compile(r"(?<![\w.=])(\d{1,3})\s?mb(?![\w/])", re.I)
"""A number of microbatches, unless bytes are spoken of: "pp 8 with 16 mb"."""
_OF_BYTES = re.compile(
    r"\b(?:hbm|mem(?:ory)?|buffers?|bytes|gi?b|mib|kib|vmem|sram|cache|payload|messages?|sizes?|log|file|disk|network)\b",
    re.I,
)
_GIG = re.compile(r"(?<=\d)\s*gigs?\b", re.I)
_G = re.compile(r"(?<=\d)\s*(?:gigs?|g)\b", re.I)
"""Bits of a network, bytes of anything else."""


def spelled_out(text: str) -> str:
    """The text with short forms in full."""
    for pattern, words in _TABLE:
        text = pattern.sub(words, text)
    if speaks_of_network(text):
        text = _LINKS_BARE.sub(r"\1Gb", text)
    if not _OF_BYTES.search(text):
        text = _MICROBATCHES.sub(r"\1 microbatches", text)
    return _G.sub("Gb", text) if speaks_of_network(text) else _GIG.sub(" GiB", text)
