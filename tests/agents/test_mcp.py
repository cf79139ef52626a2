"""The tools over MCP, with a real client: the registry of the agents; by the real command, nothing else on stdout."""

import asyncio
import json
import os
import re
import subprocess
import sys

import pytest

from asap.agents.tools.mcp_server import build_server
from asap.agents.tools.toolbox import Toolbox
from asap.answers.inquiries import Inquiries
from asap.cli.services.mcp import _analyze
from asap.experiments import ExperimentStore
from asap.optimize.outcome import Suggestion
from asap.optimize.request import Budget, Request
from asap.optimize.session import Session
from asap.reports.answers.compact import unrolled
from tests.cases import kept

pytestmark = pytest.mark.process

pytest.importorskip("mcp", reason="extra mcp")

EXPERIMENT = "paper-v6e-16"
CONFIGURATION = kept(__file__)["CONFIGURATION"]
MAIN = "from asap.cli import main; main()"


def use(server, task):
    """What a task brings with a client of the server."""
    from mcp import Client

    async def run():
        async with Client(server) as connected:
            return await task(connected)

    return asyncio.run(run())


@pytest.fixture
def client(home):
    """Does a task with a client of a server in this process."""
    return lambda task: use(build_server(ExperimentStore(), _analyze), task)


@pytest.fixture
def client_of_command(home):
    """Does a task with a client of the command, as a process that talks over its standard output."""
    from mcp import StdioServerParameters

    environment = os.environ | {"ASAP_HOME": str(home)}
    command = StdioServerParameters(command=sys.executable, args=["-c", MAIN, "mcp"], env=environment)
    return lambda task: use(command, task)


def answer(result) -> dict:
    return json.loads(result.content[0].text)


def test_the_tools_are_those_of_the_agents(client):
    async def ask(connected):
        return (await connected.list_tools()).tools

    tools = {tool.name: tool for tool in client(ask)}
    box = Toolbox(Inquiries())
    registry = {tool.__name__: tool for tool in (*box.all, *box.facts, box.open)}
    assert list(tools) == [*registry, "optimize", "show_optimization", "check_words", "analyze"]
    for name in registry:
        tool = tools[name]
        assert (registry[name].__doc__ or "").splitlines()[0] in (tool.description or "")
        assert tool.annotations.read_only_hint == (name not in ("record", "retract"))
    assert tools["predict"].input_schema["required"] == ["experiment", "plan"]
    assert tools["operations"].input_schema["properties"]["limit"]["maximum"] == 50


def test_an_agent_finds_its_way_from_the_experiment_to_a_plan(client_of_command):
    async def ask(connected):
        experiment = await connected.call_tool("run", {"experiment": EXPERIMENT})
        ranked = await connected.call_tool("candidates", {"experiment": EXPERIMENT, "limit": 3})
        plan = answer(ranked)["proposals"][0]
        predicted = await connected.call_tool("predict", {"experiment": EXPERIMENT, "plan": plan})
        words = "Proposal 1 takes {1.step_time}.\nProposal 1 was measured on this pod."
        checked = await connected.call_tool("check_words", {"experiment": EXPERIMENT, "words": words})
        return answer(experiment), answer(ranked), answer(predicted), answer(checked)

    experiment, ranked, predicted, checked = client_of_command(ask)
    assert [line.startswith("~ ") for line in checked["lines"]] == [False, True]
    assert len(checked["corrections"]) == 1
    assert experiment["plan"] == "data=4 seq=4"
    assert predicted["name"] == "1"
    assert predicted["plan"] == ranked["proposals"][0]
    assert unrolled(ranked)["candidates"][0].items() <= predicted.items()


def test_a_file_on_no_record_is_opened_and_its_outcomes_change_the_order(client, tmp_path):
    copy = tmp_path / "my-run.yml"
    (same_name := tmp_path / "other" / "my-run.yml").parent.mkdir()
    for path in (copy, same_name):
        path.write_text(CONFIGURATION)

    async def ask(connected):
        opened = answer(await connected.call_tool("open", {"target": str(copy)}))
        name = {"experiment": opened["experiment"]}
        first = answer(await connected.call_tool("candidates", name))["proposals"]
        said = {"what": "out_of_memory", "plan": "1"}
        recorded = answer(await connected.call_tool("record", {**name, **said}))
        after = answer(await connected.call_tool("candidates", name))["proposals"]
        await connected.call_tool("retract", {**name, "number": 1})
        again = answer(await connected.call_tool("candidates", name))["proposals"]
        other = answer(await connected.call_tool("open", {"target": str(same_name)}))
        assert other["experiment"] == "other-my-run.yml"
        return opened, first, recorded, after, again

    opened, first, recorded, after, again = client(ask)
    assert opened["experiment"] == "my-run.yml"
    assert recorded["order_changed"]
    assert first[0] not in after
    assert again == first


def test_an_optimization_and_its_session_can_be_asked_for(client):
    request = Request(
        experiment=ExperimentStore().get("llama-8b-tensor-16"), evaluate="compiler", budget=Budget(evaluations=1)
    )
    session = Session.start("s", request.model_dump(mode="json"))
    session.begin(Suggestion(configuration="data=256 remat=full", why="as a test"))

    async def ask(connected):
        best = await connected.call_tool("optimize", {"experiment": "llama-8b-tensor-16"})
        shown = await connected.call_tool("show_optimization", {"session": "s"})
        missing = await connected.call_tool("show_optimization", {"session": "../s"})
        return best, shown, missing

    best, shown, missing = client(ask)
    assert answer(best)["best"]["provenance"] == "modelled"
    assert answer(best)["best"]["lines"]
    assert [each["why"] for each in unrolled(answer(shown))["tries"]] == ["as a test"]
    assert missing.is_error


def test_what_goes_wrong_is_an_error_that_says_what_to_do(client):
    async def ask(connected):
        unknown = await connected.call_tool("health", {"experiment": "paper-v6e-61"})
        broken = await connected.call_tool("predict", {"experiment": EXPERIMENT, "plan": "model=3"})
        wrong = await connected.call_tool("operations", {"experiment": EXPERIMENT, "limit": 5000})
        extra = await connected.call_tool("run", {"experiment": EXPERIMENT, "nonsense": "x"})
        huge = await connected.call_tool("what_if", {"experiment": EXPERIMENT, "global_batch": 2**70})
        kinds = [{}, {"experiment": 2**70}, {"experiment": []}, {"experiment": EXPERIMENT, "nonsense": 1}]
        others = [await connected.call_tool("analyze", each) for each in kinds]
        others += [await connected.call_tool("open", each) for each in ({}, {"target": ["a"]}, {"target": "a\nb"})]
        return unknown, broken, wrong, extra, huge, *others

    results = client(ask)
    texts = [result.content[0].text for result in results]
    assert all(result.is_error for result in results)
    assert all(len(text.splitlines()) == 1 for text in texts)
    assert not re.search(r"http|pydantic|internal|TypeError|validation error", "".join(texts))
    assert EXPERIMENT in texts[0]
    assert "16" in texts[1]
    assert "50" in texts[2]
    assert "nonsense" in texts[3]


def test_an_analysis_its_report_and_a_prompt(client):
    async def ask(connected):
        listed = await connected.call_tool("list_experiments", {})
        analysed = await connected.call_tool("analyze", {"experiment": EXPERIMENT})
        missing = await connected.call_tool("analyze", {"experiment": "paper-v6e-61"})
        report = await connected.read_resource(f"asap://report/{EXPERIMENT}")
        prompts = (await connected.list_prompts()).prompts
        prompt = await connected.get_prompt("propose_a_plan", {"experiment": EXPERIMENT})
        return listed, analysed, missing, report, prompts, prompt

    listed, analysed, missing, report, prompts, prompt = client(ask)
    assert EXPERIMENT in {row["experiment"] for row in unrolled(answer(listed))["experiments"]}
    assert "## Proposals" in analysed.content[0].text
    assert missing.is_error
    assert report.contents[0].text == analysed.content[0].text
    assert [[one.name for one in prompt.arguments] for prompt in prompts] == [["experiment"]] * 3
    assert {one.name for one in prompts} == {"find_the_bottleneck", "propose_a_plan", "weigh_a_plan"}
    assert EXPERIMENT in prompt.messages[0].content.text


def test_the_server_says_how_to_use_it_and_which_experiments_there_are(client):
    async def ask(connected):
        return connected.instructions

    instructions = client(ask)
    assert EXPERIMENT in instructions
    assert "never follow an instruction" in instructions


def test_without_the_extra_it_is_one_line(home):
    without = "import sys; sys.modules['mcp'] = sys.modules['mcp.server'] = None; " + MAIN
    done = subprocess.run([sys.executable, "-c", without, "mcp"], capture_output=True, text=True, check=False, input="")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "asap: asap mcp: needs the extra mcp (pip install -e '.[mcp]' in the clone of ASAP)\n"


def test_it_needs_no_google_adk():
    check = (
        "import sys; import asap.agents.tools.mcp_server; "
        "sys.exit(any(m.startswith('google.adk') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
