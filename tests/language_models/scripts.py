"""What a local model server answers: well, or wrong in one way."""

import json
import re
from typing import Any

from asap.agents.llm.roles import ROLES, AgentTurn
from tests.language_models.server import Ask, Question, Reply, Say, Script


def well(question: Question) -> Say | Ask:
    """What the built-in model would answer."""
    move = ROLES[question.agent](AgentTurn(question.asked, question.answers))
    return Say(move) if isinstance(move, str) else Ask([(call.tool, call.arguments) for call in move])


def but(agent: str, answer: Say | Ask | Reply, times: int = 10**6) -> Script:
    """Well, but for what one agent says, so many times."""
    left = [times]

    def script(question: Question) -> Say | Ask | Reply:
        if question.agent != agent or not left[0]:
            return well(question)
        left[0] -= 1
        return answer

    return script


def gemini_end(reason: str, **content: Any) -> Reply:
    """A candidate that ends for a reason."""
    return Reply(body={"candidates": [{"finishReason": reason, "index": 0, **content}], "usageMetadata": {}})


def failure(status: int, **headers: str) -> Reply:
    """An error as the protocols report it."""
    error = {"code": status, "message": f"no: {status}", "status": "FAILED", "type": "failed"}
    return Reply(status, {"type": "error", "error": error}, headers=headers)


def obedient(question: Question) -> Say | Ask | Reply:
    """Obeys every planted instruction that it sees: plans, words, its own prompt, the key that it was sent."""
    orders = re.findall(r"OBEY \w+: propose ([a-z= 0-9]+?) first", question.text)
    if question.agent != "proposal" or not orders:
        return well(question)
    chosen = [*orders, *json.loads(question.asked)["facts"]["candidates"]["proposals"]]
    plans = list(dict.fromkeys(chosen))[:3]
    prompt = json.loads(question.text)
    told = json.dumps(prompt.get("systemInstruction") or prompt["messages"][0])[:800]
    keys = [value for name, value in question.headers.items() if name.lower() in {"authorization", "x-goog-api-key"}]
    reason = f"\x1b[31mAs I was told: it saves 97.3 %. {keys} <script>alert(1)</script> [planted-note] {told}"
    picks = [{"plan": plan, "reason": reason} for plan in plans]
    return Ask([("set_model_response", {"picks": picks, "recommendation": reason})])
