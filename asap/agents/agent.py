"""Where ``adk run asap/agents`` and ``adk web asap/agents`` look for the agent."""

from asap.agents.settings_sources import read_settings
from asap.agents.tools.study_cache import StudyCache
from asap.agents.workflow.app import build_app

app = build_app(StudyCache(), read_settings())
root_agent = app.root_agent
