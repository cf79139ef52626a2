"""The files of a run, one a host: read one after the other, and large ones by several processes.

What a host did is summed before the next is read, so a run of many hosts takes the memory of one.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from asap.profiles.cpu import Mark, convert_cpu, has_other_work, read_cpu
from asap.profiles.gpu.convert import GpuHost, convert_gpu, read_gpu
from asap.profiles.host_time import host_time
from asap.profiles.totals import Totals, memory_profile, totals_of
from asap.profiles.tpu.convert import TpuHost, convert_tpu, read_tpu
from asap.profiles.xplane.planes import read_planes
from asap.profiles.xprof.converter import Conversion
from asap.profiles.xprof.tables import MemoryProfile

_WORTH_A_PROCESS = 20_000_000
"""Bytes that take as long to read as a process to start."""

_WORKER = "import sys; from asap.profiles.hosts import write_hosts; write_hosts(sys.argv[1:])"


@dataclass(frozen=True)
class Host:
    """What a host did: of each kind of device, and while its devices waited for it.

    ``tpu`` and ``gpu`` are missing where only XProf can read them, and ``marks`` where there are other devices than a
    CPU; ``started`` says what is left out for the start-up of the job.
    """

    totals: Totals
    tpu: TpuHost | None
    gpu: GpuHost | None
    marks: Sequence[Mark] | None
    waits: dict[str, float] | None
    memory: MemoryProfile
    started: str


def read_hosts(files: Sequence[Path]) -> list[Host]:
    """What the hosts did, in the order of their files.

    Raises:
        ProfileError: a file cannot be read or is damaged.
    """
    size = sum(file.stat().st_size for file in files)
    processes = min(len(files), os.cpu_count() or 1, size // _WORTH_A_PROCESS)
    if processes < 2:
        return [_read(file) for file in files]
    with ThreadPoolExecutor(processes) as beside:
        shares = list(beside.map(_read_beside, [files[number::processes] for number in range(processes)]))
    return [shares[number % processes][number // processes] for number in range(len(files))]


def _read(file: Path) -> Host:
    planes = read_planes(file)
    tpu, gpu = read_tpu(planes), read_gpu(planes)
    totals = totals_of(planes, with_kernels=gpu is None or gpu.hides_kernels)
    events = None if totals.devices else read_cpu(planes).settled(planes)
    if events:
        totals.add(events.summed(planes))
    return Host(
        totals,
        tpu,
        gpu,
        events.marks if events and not has_other_work(planes) else None,
        host_time(planes, events),
        memory_profile(planes),
        next((each.started for each in (tpu, gpu, events) if each and each.started), ""),
    )


def _read_beside(files: Sequence[Path]) -> list[Host]:
    """In a process of its own; where that fails, in this one, which says why."""
    command = [sys.executable, "-c", _WORKER, *map(str, files)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return pickle.loads(done.stdout) if done.returncode == 0 else [_read(file) for file in files]


def write_hosts(files: Sequence[str]) -> None:
    """Read the hosts and write what they did to standard output, for the process that asked."""
    sys.stdout.buffer.write(pickle.dumps([_read(Path(file)) for file in files]))


def made_from(hosts: Sequence[Host]) -> Conversion | None:
    """The tables that XProf would return of the run; None if only XProf can make them."""
    memory = hosts[0].memory
    found = convert_tpu([host.tpu for host in hosts], memory) or convert_gpu([host.gpu for host in hosts], memory)
    cpus = [host.marks for host in hosts if host.marks is not None]
    return found or (convert_cpu(cpus, memory) if len(cpus) == len(hosts) else None)
