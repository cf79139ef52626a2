"""200 planted secrets of 26 kinds are struck, and nothing is that is none."""

import random
import string

import pytest

from asap.core.secrets import names_secret, redacted, without_secrets

EACH = 8
ALNUM = string.ascii_letters + string.digits


def drawn(draw, length, letters=ALNUM):
    """A value with a letter and a digit, and a mark by which it is found again."""
    return "q7" + "".join(draw.choice(letters) for _ in range(length - 2))


KINDS = {
    "Google": lambda v: f"AIza{v(35)}",
    "OpenAI": lambda v: f"key sk-{v(24)} of us",
    "Anthropic": lambda v: f"sk-ant-api03-{v(24)}",
    "GitHub": lambda v: f"ghp_{v(36)}",
    "GitLab": lambda v: f"glpat-{v(20)}",
    "Hugging Face": lambda v: f"hf_{v(34)}",
    "Slack": lambda v: f"xoxb-{v(24)}",
    "JWT": lambda v: f"eyJ{v(20)}.eyJ{v(20)}.{v(30)}",
    "Databricks": lambda v: "dapi" + v(32, string.digits + "abcdef").replace("q", "a"),
    "Bearer": lambda v: f"Authorization: Bearer {v(24)}",
    "Basic": lambda v: f"Authorization: Basic {v(24)}==",
    "YAML": lambda v: f"database_password: {v(10)}\nlayers: 2",
    "JSON": lambda v: f'{{"db": {{"password": "{v(10)}"}}, "layers": 2}}',
    "environment": lambda v: f"export WANDB_API_KEY={v(40)}",
    "quoted": lambda v: f"client_secret = '{v(16)}'",
    "option": lambda v: f"train.py --hub-token {v(20)} --layers 2",
    "token in an address": lambda v: f"git clone https://{v(20)}@github.com/o/r",
    "password in an address": lambda v: f"postgres://me:{v(12)}@db/runs",
    "SAS": lambda v: f"https://a.blob.core.windows.net/c?sv=2024-01-01&sig={v(24)}%3D&se=2030",
    "S3, signed": lambda v: f"https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature={v(64)}",
    "GCS, signed": lambda v: f"https://storage.googleapis.com/b/k?X-Goog-Signature={v(64)}&x=1",
    "address with a token": lambda v: f"https://example.org/run?access_token={v(20)}",
    "prose": lambda v: f"the password is {v(9)}, take it",
    "prose of a token": lambda v: f"Our API key is {v(20)}",
    "netrc": lambda v: f"machine api.wandb.ai login user password {v(40)}",
    "Azure": lambda v: f"AccountName=a;AccountKey={v(40)}==;EndpointSuffix=x",
}
NONE = (
    "passwd: no such experiment (asap experiments list shows what there is)",
    "the password is required",
    "the token is cut from the stream",
    "ms/token=300x, tokens: 4096, 7.1 token/s",
    "bytes_per_token=300x eos_token=</s> pad_token: <pad>",
    "token: 300x",
    "experts_per_token=2 num_tokens=81920",
    "https://github.com/AI-Hypercomputer/maxtext?tab=readme",
    "git clone ssh://git@github.com/o/r and me@example.org",
    "api_key=$WANDB_API_KEY api_key: ${KEY} password=<yours>",
    "sequence_parallel=True secret=None",
    "1,000 tokens in, 400 out, 0.0123 USD",
    "data=8 model=4 remat=full; 300x faster; key=value",
    "password: str = Field(description='of the database')",
)


@pytest.mark.parametrize("kind", KINDS)
def test_planted_secrets_are_struck(kind):
    draw, left = random.Random(kind), []
    for _ in range(EACH):
        planted: list[str] = []

        def value(length, letters=ALNUM, planted=planted):
            planted.append(drawn(draw, length, letters))
            return planted[-1]

        said = redacted(f"before {KINDS[kind](value)} after")
        left += [one for one in planted if one in said]
    assert left == []


def test_there_are_enough_of_them():
    assert len(KINDS) * EACH >= 200


@pytest.mark.parametrize("text", NONE)
def test_nothing_else_is_struck(text):
    assert redacted(text) == text


def test_redaction_done_twice_is_redaction_done_once():
    for kind, text in KINDS.items():
        draw = random.Random(kind)
        once = redacted(text(lambda length, letters=ALNUM, draw=draw: drawn(draw, length, letters)))
        assert redacted(once) == once


def test_a_key_names_what_is_secret():
    secret = ("db.password", "hub_token", "token", "aws_secret_access_key", "WANDB_API_KEY", "client-secret")
    harmless = ("eos_token", "tokens_per_second", "num_experts_per_token", "pad_token", "keys", "tokenizer", "monkey")
    assert [name for name in secret if not names_secret(name)] == []
    assert [name for name in harmless if names_secret(name)] == []
    assert without_secrets({"db": {"password": "plain"}, "eos_token": "</s>"}) == {
        "db": {"password": "[redacted]"}, "eos_token": "</s>",
    }  # fmt: skip


def test_the_folder_of_a_shell_is_no_password(monkeypatch):
    monkeypatch.setenv("PWD", "/home/somebody/project")
    assert redacted("python /home/somebody/project/train.py") == "python /home/somebody/project/train.py"
