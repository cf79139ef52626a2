"""Where ``adk run asap/adk`` and ``adk web asap/adk`` look for the agent: analyses, and the chat over them.

With ``--in_memory`` and ``--no_use_local_storage`` google-adk writes nothing into the package.
"""

from asap.adk.discussion import Discussion
from asap.agents.settings import read_settings
from asap.agents.workflow.app import build_app
from asap.answers.inquiries import Inquiries
from asap.experiments import ExperimentStore

_store = ExperimentStore()
app = build_app(Inquiries(_store), read_settings(), (Discussion(_store, read_settings()).discuss,), name="adk")
root_agent = app.root_agent
