"""XLA's flags for devices that are only pretended."""


def virtual_devices(count: int) -> str:
    """``XLA_FLAGS`` for ``count`` virtual CPU devices whose machine code is made fast rather than good.

    XLA compiles a step in a quarter of the time without its MLIR emitters of fusions.
    """
    flags = ("--xla_backend_optimization_level=0", "--xla_cpu_use_fusion_emitters=false")
    return " ".join((f"--xla_force_host_platform_device_count={count}", *flags))
