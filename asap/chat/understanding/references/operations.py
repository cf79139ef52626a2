"""Operations of the profile that a sentence names: ``all-reduce.82``, "the bitcast add fusion", "all-gather matmul"."""

import re

from asap.profiles import Operation
from asap.study.study import Study

_MATMUL = re.compile(r"\b(?:matmuls?|gemms?)\b", re.I)
_LEAST_WORDS = 2
_GENERIC = {"fusion", "custom", "call", "all", "operation", "copy", "the"}


def operations_named(text: str, study: Study) -> tuple[str, ...]:
    """Names of the operations that a text speaks of, longest self time first.

    A full name counts; else the words of a name, if there are two of them and one says more than "fusion".
    """
    listed = study.profile.operations if study.profile else ()
    said = _words(_MATMUL.sub("matrix multiplication", text))
    exact = [
        operation.name
        for operation in listed
        if re.search(rf"(?<![\w.-]){re.escape(operation.name)}(?![\w.-])", text, re.I)
    ]
    if exact:
        return tuple(dict.fromkeys(exact))
    found = [operation for operation in listed if _is_meant(operation, said)]
    return tuple(dict.fromkeys(operation.name for operation in found))


def _is_meant(operation: Operation, said: str) -> bool:
    words = [word for word in _words(operation.name).split() if not word.isdigit()]
    return len(words) >= _LEAST_WORDS and bool(set(words) - _GENERIC) and f" {' '.join(words)} " in said


def _words(text: str) -> str:
    return f" {' '.join(re.findall(r'[a-z]+|[0-9]+', text.lower()))} "
