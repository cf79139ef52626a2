"""Flags of compilers and runtimes: set, missing for a plan, harmful. Tables with sources."""

from asap.flags.document import FlagAdvice, FlagReview, SetFlag
from asap.flags.review import review_flags
from asap.flags.situation import Situation

__all__ = ["FlagAdvice", "FlagReview", "SetFlag", "Situation", "review_flags"]
