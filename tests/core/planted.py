"""Secrets of 52 kinds to plant: those that the redactor was written for, and others that it was not."""

import random
import string
from collections.abc import Callable

ALNUM, HEX = string.ascii_letters + string.digits, string.digits + "abcdef"
Value = Callable[..., str]


def drawn(draw: random.Random, length: int, letters: str = ALNUM) -> str:
    """A value with a letter and a digit."""
    return "".join(draw.choice(letters) for _ in range(length - 4)) + ("7a3b" if letters == HEX else "Q7z4")


KNOWN: dict[str, Callable[[Value], str]] = {
    "Google": lambda v: f"AIza{v(35)}",
    "OpenAI": lambda v: f"key sk-{v(24)} of us",
    "Anthropic": lambda v: f"sk-ant-api03-{v(24)}",
    "GitHub": lambda v: f"ghp_{v(36)}",
    "GitLab": lambda v: f"glpat-{v(20)}",
    "Hugging Face": lambda v: f"hf_{v(34)}",
    "Slack": lambda v: f"xoxb-{v(24)}",
    "JWT": lambda v: f"eyJ{v(20)}.eyJ{v(20)}.{v(30)}",
    "Databricks": lambda v: "dapi" + v(32, HEX),
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
OTHERS: dict[str, Callable[[Value], str]] = {
    "AWS secret key, in its file": lambda v: f"aws_secret_access_key = {v(20)}/{v(19)}",
    "DigitalOcean": lambda v: f"token dop_v1_{v(64, HEX)} of us",
    "Telegram bot": lambda v: f"curl https://api.telegram.org/bot123456789:{v(35)}/sendMessage",
    "Discord webhook": lambda v: f"https://discord.com/api/webhooks/1122334455/{v(68)}",
    "Vault": lambda v: f"vault write with hvs.{v(90)}",
    "Groq": lambda v: f"client(gsk_{v(52)})",
    "Google OAuth": lambda v: f"GOCSPX-{v(28)}",
    "Google refresh": lambda v: f"refresh 1//0{v(60)}",
    "Grafana": lambda v: f"glsa_{v(32)}_deadbeef",
    "Replicate": lambda v: f"use r8_{v(37)} here",
    "wandb login": lambda v: f"wandb login {v(40, HEX)}",
    "sshpass": lambda v: f"sshpass -p '{v(12)}' ssh node1 hostname",
    "header": lambda v: f'curl -H "X-API-Key: {v(32)}" https://a.example',
    "npm": lambda v: f"//registry.npmjs.org/:_authToken={v(36)}",
    "Kaggle": lambda v: f"export KAGGLE_KEY={v(32, HEX)}",
    "Terraform": lambda v: f"TF_TOKEN_app_terraform_io={v(40)}",
    "docker config": lambda v: f'{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{v(38)}=="}}}}}}',
    "PGP": lambda v: f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n{v(60)}\n{v(60)}\n-----END PGP PRIVATE KEY BLOCK-----",
    "db_pass": lambda v: f"db_pass: {v(14)}\nlayers: 2",
    "environ in Python": lambda v: f'os.environ["API_SECRET"] = "{v(24)}"',
    "Dockerfile": lambda v: f"ENV API_KEY {v(32)}",
    "redis": lambda v: f"requirepass {v(24)}",
    "YAML, folded": lambda v: f"password: >-\n  {v(20)}\nlayers: 2",
    "Atlassian": lambda v: f"ATATT3x{v(120)}",
    "German": lambda v: f"das Passwort lautet {v(12)}, bitte nehmen",
    "cookie": lambda v: f"Cookie: session={v(40)}; theme=dark",
}
"""Listed before the redactor was looked at; every second kind was put away while it was mended (of 104 such secrets
96 were left before, 16 after, and none since those were looked at)."""
KINDS = KNOWN | OTHERS


def planted(kind: str, count: int) -> tuple[list[str], list[str]]:
    """Texts that hold a secret of a kind, and the values that must not be left of them."""
    draw, values = random.Random(kind), list[str]()

    def value(length: int, letters: str = ALNUM) -> str:
        values.append(drawn(draw, length, letters))
        return values[-1]

    return [KINDS[kind](value) for _ in range(count)], values
