"""The environment variables that ASAP defines. Those of other programs keep their meaning and are not listed.

The settings of the agents may be set as ``ASAP_<FIELD>`` too; :mod:`asap.agents.settings` documents each field.
"""

from typing import NamedTuple


class EnvironmentVariable(NamedTuple):
    """A variable, and what it sets."""

    name: str
    meaning: str


VARIABLES = (
    EnvironmentVariable("ASAP_HOME", "folder of the user's experiments, sessions and indexes"),
    EnvironmentVariable("ASAP_MODEL", "language model behind the agents; --llm takes precedence"),
    EnvironmentVariable("ASAP_ENGINE", "where to compile: local, or ray://HOST:PORT; --engine takes precedence"),
    EnvironmentVariable("ASAP_PYTHON", "the Python that compiles in a chat, where MaxText or your packages are"),
    EnvironmentVariable("ASAP_EMBEDDER", "Gemini model that embeds notes and records; a built-in embedder by default"),
    EnvironmentVariable("ASAP_CHROMA_URL", "Chroma server of a team, http://HOST:PORT; a local store by default"),
    EnvironmentVariable("ASAP_DEBUG", "any value: an error shows its traceback; as --debug"),
)
