"""MaxText's settings: defaults, then the file and its base, then the overrides; each knows where it came from."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UsageError
from asap.core.text import plain
from asap.experiments.documents import Document, read_document
from asap.experiments.yaml_text import parse_yaml

DEFAULT = "MaxText default (base.yml)"
OVERRIDE = "override"
DEFAULTS: dict[str, Any] = {
    "attention": "autoselected",
    "attention_type": "global",
    "base_emb_dim": 2048,
    "base_mlp_dim": 7168,
    "base_moe_mlp_dim": -1,
    "base_num_decoder_layers": 16,
    "base_num_kv_heads": 16,
    "base_num_query_heads": 16,
    "compile_topology_num_slices": -1,
    "decoder_block": "llama2",
    "dtype": "bfloat16",
    "first_num_dense_layers": 0,
    "global_parameter_scale": 1,
    "gradient_accumulation_steps": 1,
    "head_dim": 128,
    "interleave_moe_layer_step": 1,
    "kv_lora_rank": 512,
    "logits_via_embedding": False,
    "max_target_length": 2048,
    "mlp_activations": ["silu", "linear"],
    "model_name": "default",
    "num_experts": 1,
    "num_experts_per_tok": 1,
    "num_vocab_tiling": 1,
    "opt_type": "adamw",
    "per_device_batch_size": 12.0,
    "q_lora_rank": 0,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "quantization": "",
    "remat_policy": "full",
    "scan_layers": True,
    "shared_experts": 0,
    "sliding_window_size": 0,
    "trainable_position_size": -1,
    "v_head_dim": 128,
    "vocab_size": 32_000,
    "vocab_tiling_ag_once": False,
    "weight_dtype": "float32",
}
"""Defaults of MaxText's base.yml (commit e591f30c) for what ASAP reads; those of the mesh are in asap.plans."""

_KEYS = Path(__file__).parent / "maxtext_keys.txt"
_BASE = "base_config"
_EXPONENT = re.compile(r"[-+]?\d+e[-+]?\d{1,3}", re.ASCII | re.IGNORECASE)
_DEEPEST_BASE = 8


@dataclass(frozen=True)
class Setting:
    """A value and where it was said: ``run.yml:12``, ``override`` or MaxText's default."""

    value: Any
    origin: str


class Settings(Mapping[str, Any]):
    """All settings by key. A text of ``None`` is no value, as in MaxText."""

    def __init__(self, settings: Mapping[str, Setting]):
        self._settings = settings

    def __getitem__(self, key: str) -> Any:
        value = self._settings[key].value
        return None if isinstance(value, str) and value.lower() == "none" else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    def said(self) -> "Settings":
        """Without MaxText's defaults."""
        return Settings({key: setting for key, setting in self._settings.items() if setting.origin != DEFAULT})

    def overridden(self) -> "Settings":
        """The overrides alone."""
        return Settings({key: setting for key, setting in self._settings.items() if setting.origin == OVERRIDE})

    def source(self, key: str) -> str:
        """``run.yml:12 base_emb_dim``: for the provenance of what was made of a setting."""
        return f"{self._settings[key].origin if key in self._settings else DEFAULT}: {key}"

    def whole(self, key: str) -> int | None:
        """A whole number; ``None`` where there is no value.

        Raises:
            ConfigError: it is something else.
        """
        value = self.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        raise self._wrong(key, "a whole number")

    def positive(self, key: str) -> int | None:
        """A whole number above zero; zero and -1 mean none in MaxText."""
        value = self.whole(key)
        return value if value is not None and value > 0 else None

    def number(self, key: str) -> float | None:
        """A number, also ``1e-3``, which YAML 1.1 takes for text; raises like :meth:`whole`."""
        value = self.get(key)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        if isinstance(value, str) and _EXPONENT.fullmatch(value):
            return float(value)
        raise self._wrong(key, "a number")

    def flag(self, key: str) -> bool:
        """True or false; raises like :meth:`whole`."""
        value = self.get(key, False)
        if isinstance(value, bool):
            return value
        raise self._wrong(key, "true or false")

    def text(self, key: str) -> str | None:
        """Text; ``None`` where it is empty."""
        value = self.get(key)
        return str(value) if value not in (None, "") else None

    def _wrong(self, key: str, what: str) -> ConfigError:
        place = self._settings[key].origin
        return ConfigError(f"{key} must be {what}, not {plain(repr(self[key]), 40)}", where=place)


def load_settings(document: Document, overrides: Iterable[str] = ()) -> Settings:
    """Settings of a MaxText configuration with ``key=value`` overrides on top.

    Raises:
        ConfigError: an unknown key (the nearest known one is in the hint) or a base file that is not there.
        UsageError: an override that is not ``key=value`` or repeated.
    """
    settings = {key: Setting(value, DEFAULT) for key, value in DEFAULTS.items()}
    settings |= _file_settings(document, _DEEPEST_BASE)
    seen = set()
    for override in overrides:
        key, value = _override(override)
        if key in seen:
            raise UsageError("is given twice", where=key)
        seen.add(key)
        settings[key] = Setting(value, OVERRIDE)
    return Settings(settings)


@cache
def known_keys() -> frozenset[str]:
    """Keys that MaxText has or had since 2024."""
    lines = _KEYS.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def _file_settings(document: Document, deeper: int) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    if base := document.values.get(_BASE):
        settings |= _base_settings(document, str(base), deeper)
    for key, value in document.values.items():
        if key != _BASE:
            _check_key(key, document.place(key))
            line = document.lines.get(key)
            settings[key] = Setting(value, f"{document.path.name}:{line}" if line else document.path.name)
    return settings


def _base_settings(document: Document, base: str, deeper: int) -> dict[str, Setting]:
    """Settings of a base file, which MaxText looks for beside the file and in its folder ``configs``."""
    configs = (parent for parent in document.path.absolute().parents if parent.name == "configs")
    path = next((path for folder in (document.path.parent, *configs) if (path := folder / base).is_file()), None)
    if path and deeper:
        return _file_settings(read_document(path), deeper - 1)
    if path:
        raise ConfigError("follows too many base_config files", where=document.place(_BASE))
    if Path(base).name == "base.yml":
        return {}
    raise ConfigError(f"{_BASE} {plain(base, 80)} is not there", where=document.place(_BASE))


def _override(text: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    if not separator or not re.fullmatch(r"\w+", key, re.ASCII):
        raise UsageError("is not key=value", where=plain(text, 80) or "(empty)")
    _check_key(key, OVERRIDE)
    return key, parse_yaml(value, f"{OVERRIDE} {key}")[0] if value else ""


def _check_key(key: str, place: str) -> None:
    if key not in known_keys():
        near = difflib.get_close_matches(key, known_keys(), n=2, cutoff=0.7)
        hint = f"did you mean {' or '.join(near)}?" if near else "MaxText's base.yml has no such key"
        raise ConfigError(f"unknown key {plain(key, 60)}", where=place, hint=hint)
