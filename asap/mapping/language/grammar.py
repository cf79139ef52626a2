"""The grammar of one line, as the parser reads it; ``docs/mapping.md`` publishes it as EBNF.

A program is lines. Each is empty, a comment, or one decision; their order means nothing.
"""

from typing import get_args

from asap.plans import Remat
from asap.plans.remat import TENSORS, TOGETHER, Offload, StatePrecision

ALGORITHMS = ("cannon", "summa", "pumma", "johnson", "solomonik", "cosma", "stencil", "circuit", "pennant")
EXCHANGES = ("gather", "reduce", "permute", "all_to_all")
MEMORIES = ("device", "pinned_host")
"""Memory kinds of JAX."""

LAYOUTS = ("row", "col")
TYPES = ("fp32", "bf16", "fp16", "fp8", "int8")
STATES: tuple[Offload, ...] = get_args(Offload)
"""What a training step keeps beside tensors that have a name: all parameters, the optimizer's moments, activations."""


def _any_of(words: tuple[str, ...]) -> str:
    return " | ".join(f'"{word}"' for word in words)


GRAMMAR = rf"""
line: [decision] [COMMENT]
?decision: mesh | order | shard | constrain | remat | place | layout | dtype | microbatches | pipeline_repeats
         | loss_chunks | first_moment | weight_precision | algorithm | grid | stationary | exchange | panels
         | replication | halo | overlap

mesh: "mesh" degree+
degree: [DCN] NAME "=" COUNT
order: "order" (walk | block | map)
!walk: "row" | "col" | "fold"
block: "block" counts
map: "f" "(" NAME ("," NAME)* ")" "=" expression

shard: "shard" names "by" NAME "over" axes [layers]
constrain: "constrain" names "by" NAME "over" axes [layers]
place: "place" names "on" memory [layers]
layout: "layout" names stored [layers]
dtype: "dtype" names type [layers]
remat: "remat" policy [layers]
names: (NAME | PATTERN) ("," (NAME | PATTERN))*
axes: NONE | NAME ("," NAME)*
layers: "in" "layers" INDEX [".." INDEX]
!memory: {_any_of(MEMORIES)}
!stored: {_any_of(LAYOUTS)}
!type: {_any_of(TYPES)}
!policy: {_any_of(tuple(Remat))} | KEPT ("+" KEPT)*

microbatches: "microbatches" COUNT
pipeline_repeats: "pipeline_repeats" COUNT
loss_chunks: "loss_chunks" COUNT
first_moment: "first_moment" precision
weight_precision: "weight_precision" precision
!precision: {_any_of(get_args(StatePrecision))}
algorithm: "algorithm" known
!known: {_any_of(ALGORITHMS)}
grid: "grid" counts
stationary: "stationary" operand
!operand: "A" | "B" | "C"
panels: "panels" COUNT
replication: "replication" COUNT
halo: "halo" COUNT
exchange: "exchange" way
!way: {_any_of(EXCHANGES)}
overlap: "overlap" switch
!switch: "on" | "off"
counts: "(" COUNT ("," COUNT)* ")"

?expression: comparison | comparison "?" expression ":" expression -> choice
?comparison: sum | sum COMPARE sum -> binary
?sum: product | sum PLUS_MINUS product -> binary
?product: factor | product TIMES factor -> binary
?factor: atom | "-" factor -> negative
?atom: INDEX -> number | NAME -> variable | "(" expression ")"

DCN.1: "dcn."
NONE: "none"
KEPT: "host."? ({_any_of((*TENSORS, *TOGETHER))})
NAME: /[A-Za-z_][A-Za-z0-9_]*/
PATTERN: /[A-Za-z0-9_]*\*[A-Za-z0-9_*]*/
COUNT: /[1-9][0-9]*/
INDEX: /[0-9]+/
COMPARE: "<=" | ">=" | "==" | "!=" | "<" | ">"
PLUS_MINUS: "+" | "-"
TIMES: "*" | "/" | "%"
COMMENT: /#.*/
%ignore /[ \t]+/
"""
"""In the notation of lark."""
