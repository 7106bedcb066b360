"""`make demo`: the main job on a real Kubernetes, from nothing to rewards in two Runs' status.

Starts the cluster of this folder, or takes the context that CONTEXT names; builds the images,
installs Wavetank, applies the example's worlds, benchmark and Runs, follows them, prints what came
out, and says where to look further. `demo.py stop` removes what it made; `demo.py install` goes
only as far as a ready operator, for tests.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CLUSTER = HERE / "cluster.py"
CRDS = ROOT / "crds"
INSTALL = HERE / "demo-install.yaml"
EXAMPLE = ROOT / "examples" / "01-crm" / "all-in-one.yaml"

SYSTEM = "wavetank-system"
NAMESPACE = "wavetank-demo"
STORE_FOLDER = Path("/var/lib/wavetank-store")
"""Where the demo's store keeps its objects: the path of the PersistentVolume in demo-install.yaml."""

RUNS = ("crm-oracle", "crm-nop")


@dataclass(frozen=True)
class Cluster:
    """A cluster that kubectl and the command line are pointed at."""

    kubectl: tuple[str, ...]
    """kubectl with the options that name the cluster."""
    options: tuple[str, ...]
    """The options of ``wavetank`` that name it."""
    is_ours: bool
    """Started from this folder, not named by CONTEXT."""


class DemoError(Exception):
    """A step of the demo did not work; the message says which and why."""


def main(arguments: Sequence[str]) -> int:
    """Run the demo, or stop it; return the exit code."""
    step = " ".join(arguments)
    if step not in ("", "install", "stop"):
        print(f"demo: unknown: {step}. Give nothing, 'install' or 'stop'.", file=sys.stderr)
        return 2
    try:
        return {"": run, "install": install_only, "stop": stop}[step]()
    except DemoError as error:
        print(f"\ndemo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\ndemo: interrupted; `make demo` goes on where this left off, `make demo-stop` ends it."
        )
        return 130


def run() -> int:
    """Bring everything up, follow the Runs, print what came out, compare it with what must."""
    began = time.monotonic()
    cluster = ready_cluster()
    say("installing Wavetank")
    install(cluster)
    say("applying the example: two worlds, a benchmark, two Runs")
    apply_example(cluster)
    say("following the Runs")
    wavetank(cluster, "runs", "watch", *RUNS, "-n", NAMESPACE)
    say("results")
    wavetank(cluster, "benchmarks", "results", "crm", "-n", NAMESPACE)
    faults = unexpected(cluster)
    print_next_steps(cluster, time.monotonic() - began)
    for fault in faults:
        print(f"demo: {fault}", file=sys.stderr)
    return 1 if faults else 0


def ready_cluster() -> Cluster:
    """Return the cluster that CONTEXT names, else the one of this folder, started and with images."""
    context = os.environ.get("CONTEXT", "")
    if context:
        return Cluster(("kubectl", "--context", context), ("--context", context), is_ours=False)
    say("starting a Kubernetes")
    call([sys.executable, str(CLUSTER), "start"])
    say("building images")
    call([sys.executable, str(CLUSTER), "images"])
    status = json.loads(output([sys.executable, str(CLUSTER), "status", "--json"]))
    kubeconfig = output([sys.executable, str(CLUSTER), "kubeconfig"]).strip()
    kubectl = (status["kubectl"], "--kubeconfig", kubeconfig)
    return Cluster(kubectl, ("--kubeconfig", kubeconfig), is_ours=True)


def install(cluster: Cluster) -> None:
    """Install the chart as it is rendered for the demo, and wait until it is ready."""
    apply = [*cluster.kubectl, "apply", "--server-side", "--force-conflicts", "-f"]
    if cluster.is_ours:
        STORE_FOLDER.mkdir(mode=0o750, parents=True, exist_ok=True)
        call([*apply, str(CRDS)], quiet=True)
        call([*cluster.kubectl, "wait", "--for=condition=Established", "-f", str(CRDS)], quiet=True)
        call([*apply, str(INSTALL)], quiet=True)
        # The tag is the same for every build, so only a restart takes the newest images.
        restart = ["-n", SYSTEM, "rollout", "restart", "deployment"]
        call([*cluster.kubectl, *restart], quiet=True)
    deployments = output(
        [*cluster.kubectl, "-n", SYSTEM, "get", "deployments", "-o", "name"]
    ).split()
    if not deployments:
        raise DemoError(
            f"there is no Wavetank in namespace {SYSTEM}: install the chart there first."
        )
    for deployment in deployments:
        call(
            [*cluster.kubectl, "-n", SYSTEM, "rollout", "status", deployment, "--timeout=180s"],
            quiet=True,
        )


def apply_example(cluster: Cluster) -> None:
    """Apply the example; its Runs anew, since a Run is one execution and these may be over."""
    found = output(
        [*cluster.kubectl, "get", "namespace", NAMESPACE, "--ignore-not-found", "-o", "name"]
    )
    if not found:
        call([*cluster.kubectl, "create", "namespace", NAMESPACE], quiet=True)
    call(
        [
            *cluster.kubectl,
            "-n",
            NAMESPACE,
            "delete",
            "runs.wavetank.dev",
            *RUNS,
            "--ignore-not-found",
        ],
        quiet=True,
    )
    call([*cluster.kubectl, "-n", NAMESPACE, "apply", "-f", str(EXAMPLE)])


def unexpected(cluster: Cluster) -> list[str]:
    """Return what differs from what the example must give: oracle all, nop the initial mean."""
    oracle, nop = (resource(cluster, "run", name)["status"] for name in RUNS)
    initial = resource(cluster, "benchmark", "crm")["status"]["initialMean"]
    wanted = [
        ("oracle's mean", oracle["reward"]["mean"], "1.0000"),
        ("oracle's coverage", oracle["coverage"]["rollouts"], "1.0000"),
        ("nop's mean", nop["reward"]["mean"], initial),
    ]
    return [f"{what} is {is_}, not {must}" for what, is_, must in wanted if is_ != must]


def resource(cluster: Cluster, kind: str, name: str) -> dict[str, Any]:
    """Return an object of the demo's namespace."""
    text = output(
        [*cluster.kubectl, "-n", NAMESPACE, "get", f"{kind}s.wavetank.dev", name, "-o", "json"]
    )
    found: dict[str, Any] = json.loads(text)
    return found


def print_next_steps(cluster: Cluster, seconds: float) -> None:
    """Say where to look further, and how to stop everything."""
    kubectl, options = " ".join(cluster.kubectl), " ".join(cluster.options)
    print(
        f"""
The demo took {seconds:.0f} s. Look further:

  {kubectl} -n {NAMESPACE} get worlds,benchmarks,runs
  {kubectl} -n {NAMESPACE} describe run crm-oracle
  {kubectl} -n {NAMESPACE} get configmap crm-oracle-results -o jsonpath='{{.data.results\\.json}}'
  .venv/bin/wavetank benchmarks results crm --runs -n {NAMESPACE} {options}
  .venv/bin/wavetank runs evidence crm-oracle escalate 0 -n {NAMESPACE} {options}
  .venv/bin/wavetank benchmarks run crm -k 2 --agent scripted:partial --wait -n {NAMESPACE} {options}

Stop everything and remove it: make demo-stop
"""
    )


def install_only() -> int:
    """Go as far as a ready operator."""
    install(ready_cluster())
    return 0


def stop() -> int:
    """Remove what the demo made: of a cluster of ours all, of a named one its namespace."""
    context = os.environ.get("CONTEXT", "")
    if context:
        call(
            [
                "kubectl",
                "--context",
                context,
                "delete",
                "namespace",
                NAMESPACE,
                "--ignore-not-found",
            ]
        )
        return 0
    call([sys.executable, str(CLUSTER), "stop", "--purge"])
    if STORE_FOLDER.exists():
        call(["rm", "-rf", "--", str(STORE_FOLDER)])
    return 0


def wavetank(cluster: Cluster, *arguments: str) -> None:
    """Run the command line on the demo's cluster; it prints for itself."""
    program = Path(sys.executable).with_name("wavetank")
    call([str(program), *arguments, *cluster.options])


def say(step: str) -> None:
    """Print the beginning of a step."""
    print(f"\n== {step}", flush=True)


def call(command: Sequence[str], *, quiet: bool = False) -> None:
    """Run a program; what it printed quietly comes out if it did not work."""
    ended = subprocess.run(command, capture_output=quiet, text=True, check=False)
    if ended.returncode != 0:
        said = f":\n{ended.stdout}{ended.stderr}" if quiet else "; its output is above"
        raise DemoError(f"'{' '.join(command)}' ended with code {ended.returncode}{said}")


def output(command: Sequence[str]) -> str:
    """Return what a program prints."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise DemoError(
            f"'{' '.join(command)}' ended with code {ended.returncode}:\n{ended.stderr}"
        )
    return ended.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
