"""The environment variables that ASAP reads, for the reference."""

VARIABLES = {
    "ASAP_HOME": "Folder of experiments, worklogs, indexes and compiled programs. Default: the platform's data folder.",
    "ASAP_MODEL": "The language model of the agents, as `--llm`. Default: `builtin/planner`, which needs no key.",
    "ASAP_ENGINE": "Where plans are compiled, as `--engine`: `local`, or `ray://HOST:PORT`.",
    "ASAP_PYTHON": "The Python that compiles in a chat: the one that has MaxText or your packages.",
    "ASAP_CHROMA_URL": "A Chroma server that a team shares for the indexes: `http://HOST:8000`. Default: local files.",
    "ASAP_EMBEDDER": "`gemini-…` to embed notes with a Gemini model, which needs a key. Default: our own embedding.",
    "ASAP_DEBUG": "Any value: show the traceback of an error, as `--debug`.",
    "GOOGLE_API_KEY": "Key of the Gemini API; other models read the variable that LiteLLM documents for them.",
    "NO_COLOR": "Any value: no colours in the output.",
    "GITHUB_TOKEN": "Token of `asap ci comment`; it may write to pull requests.",
    "GITHUB_EVENT_PATH": "The event file of `asap ci comment`; GitHub sets it.",
    "GITHUB_API_URL": "Base URL of the GitHub API for `asap ci comment`; GitHub sets it.",
    "PRE_COMMIT_FROM_REF": "Base commit of `asap ci`; pre-commit sets it.",
    "PRE_COMMIT_TO_REF": "Head commit of `asap ci`; pre-commit sets it.",
}
