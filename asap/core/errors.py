"""The exceptions of ASAP.

AsapError                    7  internal: a bug of ours
├── UsageError               2  the command line is wrong
├── NotFoundError            3  an ID or a file does not exist
├── BadInputError            4  input cannot be read or is not valid
│   ├── ConfigError             a configuration or experiment file
│   │   └── UnreadError            one that only a run can tell, or of a program that is not read
│   ├── PlanError               a sharding configuration
│   └── ProfileError            a profile
├── InsufficientEvidenceError 5 readable, but not enough for an answer
└── ServiceError             6  a model or a service failed

The number is the exit code of the command line.
"""


class AsapError(Exception):
    """Base of all errors of ASAP.

    Args:
        message: what is wrong, in one sentence.
        where: the file, line, field or ID that it concerns.
        hint: what to do about it.
    """

    exit_code = 7

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.message}{advice}"


class UsageError(AsapError):
    """The command line is wrong."""

    exit_code = 2


class NotFoundError(AsapError):
    """An experiment, note, record, session or file does not exist."""

    exit_code = 3


class BadInputError(AsapError):
    """Input exists but cannot be used."""

    exit_code = 4


class ConfigError(BadInputError):
    """A configuration or experiment file is malformed or contradicts itself."""

    of_stack = False
    """Whether the file is known to be a training stack's, as its reader refused it."""


class UnreadError(ConfigError):
    """A script or configuration that is not read: only a run can tell what it says, or its program is not known."""


class PlanError(BadInputError):
    """A sharding configuration is malformed or invalid."""


class ProfileError(BadInputError):
    """A profile is missing data, corrupt or empty."""


class InsufficientEvidenceError(AsapError):
    """What is known does not suffice for an answer; ``hint`` says what would."""

    exit_code = 5


class ServiceError(AsapError):
    """A language model or a server failed or refused."""

    exit_code = 6


class InterruptedRunError(ServiceError):
    """The user stopped the agents with Ctrl-C."""

    exit_code = 130


def extra_hint(extra: str) -> str:
    """How to install an optional part of ASAP, which itself is installed from its clone."""
    return f"pip install -e '.[{extra}]' in the clone of ASAP"
