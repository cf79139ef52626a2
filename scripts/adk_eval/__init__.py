"""The agents for ``adk eval``, which wants the extra ``google-adk[eval]`` (not among those of ASAP).

adk eval scripts/adk_eval scripts/adk_eval/trajectories.evalset.json --config_file_path scripts/adk_eval/config.json

The model is that of ``ASAP_MODEL``, ``builtin/planner`` by default. What counts is which tools are called, in order.
"""

from asap.adk import agent

__all__ = ["agent"]
