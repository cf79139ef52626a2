"""The agents and the chat for google-adk's own command line."""

from asap.adk import agent

__all__ = ["agent"]
