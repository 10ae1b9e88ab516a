#!/usr/bin/env python3
"""How long the simulator takes for a step of Llama 3 405B on 16,384 GPUs, and the planner for 70B on 1,024: wall-clock
and memory of the whole process, one core. One JSON object."""

import json
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def timed(*arguments):
    """The program's answer, with the processor's seconds and the most memory of its process."""
    code = ("import json, resource, subprocess, sys\n"
            "done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True)\n"
            "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
            "print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, done.stdout]))")
    command = [sys.executable, "-c", code, "taskset", "-c", "0", "build/ballast", *arguments, "--json"]
    code, seconds, memory, text = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout)
    if code:
        sys.exit(f"large_cluster: {arguments} failed")
    return json.loads(text), {"process_seconds": seconds, "peak_resident_bytes": memory}


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    step, used = timed("simulate", "recipes/simulate/llama3_405b.toml", "--set", "training.steps=1", "--set",
                       "faults.failures_per_gpu_day=0")
    simulated = {"gpus": step["gpus"], "events": step["events"], "simulation_seconds": step["simulation_seconds"],
                 "step_seconds": step["step_seconds"]["mean"], **used}
    plan, used = timed("plan", "recipes/plan/llama3_70b.toml")
    best = plan["candidates"][0]
    planned = {"gpus": plan["gpus"], "considered": plan["considered"], "simulated": plan["simulated"],
               "planning_seconds": plan["planning_seconds"], "best_tokens_per_second": best["tokens_per_second"],
               "variations": plan["variations"], **used}
    print(json.dumps({"simulate": simulated, "plan": planned}, indent=2))


if __name__ == "__main__":
    main()
