"""Launchers that a text names: "yaml for megatron", "1 as torchtitan toml"."""

import re

from asap.plans.launchers import Stack

_NAMES: tuple[tuple[Stack, str], ...] = (
    ("bridge", r"(?:megatron|mcore)[- ]?bridge"),
    ("deepspeed", r"deep-?speed"),
    ("megatron", r"megatron(?:[- ](?:lm|core))?|mcore|mlm"),
    ("maxtext", r"max-?text"),
    ("torchtitan", r"torch-?titan|titan"),
    ("nemo", r"nemo"),
    ("nanotron", r"nanotron"),
    ("axolotl", r"axolotl"),
    ("accelerate", r"(?:hf |hugging ?face )?accelerate"),
    ("primus", r"primus"),
)
_WRITTEN = (
    r"(?:ya?ml|toml|json|config\w*|args?|arguments?|flags?|lines?|commands?|cli|script|settings?|overrides?|recipe"
    r"|launch\w*|words|terms|speak|syntax|format|equivalent|version)"
)
_OF = r"(?:for|in|as|into|to|under|with)"


def launcher_named(text: str) -> Stack | None:
    """The launcher in whose words something is wanted; ``None`` where none is named so."""
    for stack, name in _NAMES:
        alone = rf"^\W*(?:(?:and|or|but|ok|so|now)\W+)*(?:{name})\W*$"
        if re.search(rf"{alone}|\b{_OF} (?:an? |the |our )?(?:{name})\b|\b(?:{name})(?:'?s)? {_WRITTEN}\b", text, re.I):
            return stack
    return None


def says_settings(text: str) -> bool:
    """Whether it speaks of what is written for a launcher."""
    return re.search(rf"\b{_WRITTEN}\b", text, re.I) is not None
