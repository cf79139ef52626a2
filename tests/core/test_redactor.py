"""208 planted secrets of 52 kinds are struck, and nothing is that is none."""

import pytest

from asap.core.secrets import names_secret, redacted, without_secrets
from tests.core.planted import KINDS, planted

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
    "USD per token = price per second * T_step",
    "_ZN7cutlass6KernelI25Mma_128x64ILi128ELi64ELi32EEENS1_4gemmE",
    "SubTensorOpWithCastTensor1d of 20261128-112233-9f3a7c",
)


@pytest.mark.parametrize("kind", KINDS)
def test_planted_secrets_are_struck(kind):
    texts, values = planted(kind, 4)
    said = [redacted(f"before {text} after") for text in texts]
    assert [one for one in values if any(one in text for text in said)] == []


@pytest.mark.parametrize("text", NONE)
def test_nothing_else_is_struck(text):
    assert redacted(text) == text


def test_redaction_done_twice_is_redaction_done_once():
    for text in (text for kind in KINDS for text in planted(kind, 1)[0]):
        once = redacted(text)
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
