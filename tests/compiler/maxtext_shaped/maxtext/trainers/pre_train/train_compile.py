"""Ahead-of-time compilation."""

from pathlib import Path

import jax
import numpy as np
import yaml
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from maxtext.utils.accelerator_to_spec_map import TOPOLOGIES

AXES = ("data", "stage", "fsdp", "tensor")


def main(argv):
    settings = _settings(argv[1], argv[2:])
    if settings.get("model_name") == "broken":
        raise ValueError("no such model")
    name = settings["compile_topology"]
    topology = name if settings.get("internal_compile") else TOPOLOGIES[name]
    devices = topologies.get_topology_desc(topology, "tpu").devices
    shape = (1, 1, settings["ici_fsdp_parallelism"], settings["ici_tensor_parallelism"])
    mesh = Mesh(np.array(devices).reshape(shape), AXES)
    width = settings["width"]

    def array(*axes):
        return jax.ShapeDtypeStruct((width, width), "bfloat16", sharding=NamedSharding(mesh, PartitionSpec(*axes)))

    jax.jit(lambda a, b: a @ b).lower(array("fsdp"), array("tensor")).compile(compiler_options={})
    raise AssertionError("the program was compiled in here")


def _settings(configuration, arguments):
    document = yaml.safe_load(Path(configuration).read_text())
    base = yaml.safe_load(Path(document.pop("base_config")).read_text())
    said = dict(argument.split("=", 1) for argument in arguments)
    return {**base, **document, **{key: yaml.safe_load(value) for key, value in said.items()}}
