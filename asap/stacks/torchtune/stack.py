"""What of torchtune no table says: the model that a builder makes (``torchtune.models.llama3_1.llama3_1_8b``)."""

import re
from itertools import product

from asap.models import find_architecture

_KIND = re.compile(r"[-_](?:base|instruct)$")
_MOST_NUMBERS = 4


def model_name(builder: str) -> str:
    """The name of a model that a builder may stand for, in which a number belongs to what is before it or after it:
    ``llama3_1_8b`` is ``llama3.1-8b``, ``qwen3_1_7b`` is ``qwen3-1.7b``; as it is where none is known."""
    named = builder.rpartition(".")[2]
    parts = _KIND.sub("", named).split("_")
    joints = [i for i in range(1, len(parts)) if parts[i][:1].isdigit() and parts[i - 1][-1:].isdigit()]
    for marks in product(".-", repeat=min(len(joints), _MOST_NUMBERS)):
        chosen = dict(zip(joints, marks, strict=False))
        spelled = "".join(part if not i else f"{chosen.get(i, '-')}{part}" for i, part in enumerate(parts))
        if find_architecture(spelled) is not None:
            return spelled
    return named
