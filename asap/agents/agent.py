"""Where ``adk run asap/agents`` and ``adk web asap/agents`` look for the agent."""

from asap.agents.desk import Desk
from asap.agents.settings import read_settings
from asap.agents.team import build_app

app = build_app(Desk(), read_settings().model)
root_agent = app.root_agent
