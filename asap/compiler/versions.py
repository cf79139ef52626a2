"""Which compiler there is: the libtpu that the installed jax pins, or one clear sentence."""

import re
from importlib import metadata

from asap.core.errors import ConfigError


def compiler_versions(tpu: bool = True) -> dict[str, str]:
    """Versions of jax, jaxlib and, for TPUs, libtpu.

    Raises:
        ConfigError: libtpu is missing, or is not the one that jax pins.
    """
    jax = metadata.version("jax")
    versions = {"jax": jax, "jaxlib": metadata.version("jaxlib")}
    return {**versions, "libtpu": _libtpu(jax)} if tpu else versions


def _libtpu(jax: str) -> str:
    hint = f'pip install "jax[tpu]=={jax}"'
    try:
        libtpu = metadata.version("libtpu")
    except metadata.PackageNotFoundError:
        raise ConfigError("the TPU compiler is not installed", where="libtpu", hint=hint) from None
    pinned = next((line for line in metadata.requires("jax") or [] if line.startswith("libtpu")), "")
    wanted = re.search(r"==([\d.]+?)(?:\.\*)?(?:;|\s|$)", pinned)
    if wanted and not f"{libtpu}.".startswith(f"{wanted.group(1)}."):
        raise ConfigError(f"{libtpu} is not the {wanted.group(1)} that jax {jax} pins", where="libtpu", hint=hint)
    return libtpu
