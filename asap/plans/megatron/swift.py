"""Megatron-LM's arguments as ms-swift takes them: what it has by default is not left out, but said to be off
(modelscope/ms-swift, ``docs/source_en/Megatron-SWIFT/Command-line-parameters.md``)."""

from collections.abc import Mapping

OF_SWIFT = "command_of_swift"
"""Among settings: that ms-swift takes them."""
_OFF = {"recompute_granularity": "none", "use_distributed_optimizer": "false", "sequence_parallel": "false"}


def is_of_swift(arguments: Mapping[str, object]) -> bool:
    """Whether ms-swift runs these arguments."""
    return OF_SWIFT in arguments


def in_words_of_swift(arguments: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """Arguments that change; ``False`` is one to leave out."""
    return {key: _OFF.get(key, value) if value is False else value for key, value in arguments.items()}
