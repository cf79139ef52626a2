"""Results for people and for tools: terminal, Markdown, JSON."""

from asap.reports.analysis import Analysis

__all__ = ["Analysis"]
