"""A stand-in for a trainer that logs as MaxText does: ``trainer.py MODE key=value …``. It notes each start."""

import os
import subprocess
import sys
import time

mode, settings = sys.argv[1], dict(word.split("=", 1) for word in sys.argv[2:])
if starts := os.environ.get("STARTS"):
    with open(starts, "a", encoding="utf-8") as stream:
        stream.write(" ".join(sorted(sys.argv[2:])) + "\n")


def say(line: str) -> None:
    print(line, flush=True)


def steps(count: int, seconds: float, grows: float = 0.0, loss: str = "9.1") -> None:
    for number in range(count):
        took = seconds * (1 + grows * number)
        time.sleep(float(os.environ.get("SLEEP", "0.002")))
        say(f"completed step: {number}, seconds: {took:.5f}, TFLOP/s/device: 1.0, Tokens/s/device: 9.0, loss: {loss}")


for key, value in settings.items() if mode != "silent" else ():
    say(f"Config param {key}: {'1' if mode == 'ignores' else value}")
match mode:
    case "good":
        tensor, policy = float(settings.get("ici_tensor_parallelism", 16)), settings.get("remat_policy", "full")
        parts = 0.8 if "num_vocab_tiling" in settings else 1.0
        steps(40, 2.5 * (1 + 0.2 * tensor) * (1.2 if policy == "full" else 1.0) * parts)
    case "silent":
        steps(40, 1.0)
    case "noisy":
        for number in range(40):
            steps(1, 1.5 if number % 2 else 1.0)
    case "board":
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        writer = EventFileWriter(os.environ["BOARD"])
        for number in range(20):
            value = Summary.Value(tag="perf/step_time_seconds", simple_value=0.5)
            writer.add_event(Event(step=number, wall_time=1e9 + number, summary=Summary(value=[value])))
        writer.close()
    case "mlflow":
        import mlflow  # pyright: ignore[reportMissingImports]

        with mlflow.start_run(run_name=os.environ["RUN_NAME"]):
            for number in range(20):
                mlflow.log_metric("perf/step_time_seconds", 0.5, step=number)
    case "memory":
        say("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 22.23G of 15.75G hbm.")
        sys.exit(1)
    case "refuses":
        say("Traceback (most recent call last):\nValueError: batch \x1b[31m512 is not divisible by 3")
        sys.exit(1)
    case "crashes":
        steps(2, 1.0)
        say("RuntimeError: the moon is full")
        sys.exit(3)
    case "preempted":
        say("slurmstepd: error: *** JOB 7 CANCELLED DUE TO PREEMPTION ***")
        sys.exit(143)
    case "nothing":
        say("hello")
    case "failed well":
        say("Traceback (most recent call last):\nOSError: no such bucket")
    case "garbage":
        sys.stdout.buffer.write(os.urandom(200_000))
    case "not a number":
        steps(40, 1.0, loss="nan")
    case "ignores":
        steps(40, 1.0)
    case "slower":
        steps(40, 1.0, grows=0.02)
    case "hangs":
        subprocess.Popen(["sleep", "300"])
        time.sleep(300)
    case "leaves a child":
        steps(40, 1.0)
        subprocess.Popen(["sleep", "300"])
