"""Training steps as users might hand them in, good and bad."""

import os
import signal
import time


def matmul(mesh):
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    def array(*axes):
        return jax.ShapeDtypeStruct((1024, 1024), "bfloat16", sharding=NamedSharding(mesh, PartitionSpec(*axes)))

    return jax.jit(lambda a, b: a @ b), (array("data"), array("model"))


def too_large(mesh):
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    everywhere = NamedSharding(mesh, PartitionSpec())
    return jax.jit(lambda a: a * 2), (jax.ShapeDtypeStruct((2**18, 2**17), "float32", sharding=everywhere),)


def wrong(mesh):
    raise ValueError("my own mistake")


def wrong_in_tracing(mesh):
    function, arguments = matmul(mesh)
    import jax

    return jax.jit(lambda a, b: function(a, b[:-1])), arguments


def aborts(mesh):
    os.abort()


def hangs(mesh):
    time.sleep(600)


def hangs_once(mesh):
    marker = os.path.join(os.environ["ASAP_TEST_MARKERS"], "hung")
    if not os.path.exists(marker):
        open(marker, "w").close()
        time.sleep(600)
    return matmul(mesh)


def eats_memory(mesh):
    held = bytearray(2**32)
    held[:: 2**12] = b"x" * len(held[:: 2**12])
    time.sleep(600)


def kills_its_worker_once(mesh):
    """What a machine does that dies in the middle: the process that waits for this compilation is killed."""
    marker = os.path.join(os.environ["ASAP_TEST_MARKERS"], "killed")
    if not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
    return matmul(mesh)
