"""What the agents are told before they begin: the facts of a run, looked up by code."""

from asap.agents.grounding.catalogue import Catalogues
from asap.agents.tools.toolbox import Answer, tool_of
from asap.answers.inquiries import Inquiries

OF_RUN = ("run", "health", "bottleneck", "operations")
OF_PLANS = ("candidates", "precedents", "settings")


def facts(names: tuple[str, ...], studies: Inquiries, catalogues: Catalogues, experiment: str) -> dict[str, Answer]:
    """Answers of queries by name; a query that cannot be answered says why."""
    return {name: tool_of(name, studies, catalogues, experiment)() for name in names}
