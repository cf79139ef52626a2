"""Stand-ins for the tools of clusters: ``cluster.py TOOL ARGUMENT …``. A job is a process with its log in $CLUSTER."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

tool, *words = sys.argv[1:]
folder = Path(os.environ["CLUSTER"])
with (folder / "calls").open("a", encoding="utf-8") as stream:
    print(shlex.join([tool, *words]), file=stream)


def option(name: str) -> str:
    return shlex.join(words).partition(f"{name}=")[2].split()[0] if name not in words else words[words.index(name) + 1]


def start(name: str, command: list[str], log: str = "") -> None:
    script = f"{shlex.join(command)} > {log or folder / name}.log 2>&1; echo $? > {folder / name}.exit"
    job = subprocess.Popen(["sh", "-c", script], start_new_session=True, stdout=subprocess.DEVNULL)
    (folder / f"{name}.pid").write_text(str(job.pid))
    time.sleep(0.1)


def code(name: str, follow: bool = False) -> int:
    with (folder / f"{name}.log").open(encoding="utf-8") if follow else open(os.devnull, encoding="utf-8") as log:
        while not (folder / f"{name}.exit").exists():
            print(log.read(), end="", flush=True)
            time.sleep(0.02)
        print(log.read(), end="", flush=True)
    return int((folder / f"{name}.exit").read_text())


match tool, words:
    case "sbatch", ["--wait", _, _, script, *arguments]:
        start(name := option("--job-name"), ["sh", script, *arguments], option("--output").removesuffix(".log"))
        sys.exit(code(name))
    case "kubectl", ["apply", "-f", "-"]:
        job = yaml.safe_load(sys.stdin)
        (container,) = job["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
        start(job["metadata"]["name"], [*container["command"], *container["args"]])
    case "xpk", ["workload", "create", *_]:
        start(option("--workload"), shlex.split(option("--command")))
    case "ray", ["job", "submit", _, name, _, _, "--", *command]:
        start(name, command)
        sys.exit(code(name, follow=True))
    case "kubectl", ["logs", "-f", job]:
        name = job.removeprefix("job/").removesuffix("-workers-0").removesuffix("-slice-job-0")
        if not (waited := folder / f"{name}.waited").exists():
            waited.touch()
            sys.exit("Error from server (BadRequest): container is waiting to start: ContainerCreating")
        code(name, follow=True)
    case ("kubectl", ["wait", _, _, job]) | ("xpk", ["workload", "list", _, _, _, job]):
        sys.exit(bool(code(job.removeprefix("jobset/"))))
    case ("scancel", [job]) | ("kubectl", ["delete", "jobset", job]) | ("ray", ["job", "stop", job]) | (
        "xpk", ["workload", "delete", _, _, _, _, job]
    ):  # fmt: skip
        os.killpg(int((folder / f"{job.removeprefix('--name=')}.pid").read_text()), signal.SIGKILL)
    case _:
        sys.exit(f"{tool}: unknown arguments: {words}")
