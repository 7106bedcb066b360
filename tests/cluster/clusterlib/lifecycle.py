"""Starting the cluster and telling how it is."""

import http.client
import json
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from clusterlib import (
    api,
    build,
    certificates,
    cgroups,
    config,
    network,
    packages,
    pause,
    processes,
    programs,
    settings,
    shell,
    teardown,
)
from clusterlib.processes import Program
from clusterlib.settings import Settings

_READY_SECONDS = 90.0
"""A machine that compiles something beside it has been seen to take half of this."""

_SOCKET_PATH_LIMIT = 80
"""The kernel takes 107 characters in a socket's path; the longest of ours is 27 below the state folder."""


def start(folders: Settings) -> None:
    """Bring the cluster up, from nothing or from any part of it having died; returns when a Pod can run.

    Raises:
        ClusterToolError: If something does not get ready; the end of its log is in the message.
    """
    if len(str(folders.state)) > _SOCKET_PATH_LIMIT:
        raise shell.ClusterToolError(
            f"The state folder '{folders.state}' has more than {_SOCKET_PATH_LIMIT} characters, too long for the "
            f"sockets in it. Name a shorter one with --state."
        )
    packages.install()
    build.build(folders)
    with teardown.one_at_a_time(folders):
        progress = shell.Progress("Starting the cluster")
        _refuse_another_cluster(folders)
        _clean_up_after_a_crash(folders, progress)
        certificates.make(folders)
        config.write(folders)
        started = _start_programs(folders, progress)
        if not started and _node_is_ready(folders):
            progress.done("already running")
            return
        _wait_for_node(folders, progress)
        _run_first_pod(folders, progress)
        progress.done("the node is Ready and ran a Pod")


def status(folders: Settings) -> dict[str, Any]:
    """Return what runs: ``running`` (all of it, and the node is Ready), ``programs`` (name to healthy), paths."""
    health = {
        program.name: processes.is_running(folders, program.name) and _is_healthy(folders, program)
        for program in programs.all_of(folders)
    }
    return {
        "running": all(health.values()) and _node_is_ready(folders),
        "programs": health,
        "kubeconfig": str(folders.kubeconfig),
        "kubectl": str(folders.programs / "kubectl"),
        "state": str(folders.state),
        "logs": str(folders.logs),
    }


def _refuse_another_cluster(folders: Settings) -> None:
    """Raise if another Kubernetes has this machine's firewall: two kube-proxies would undo each other's work."""
    if (folders.state / "sysctls.json").exists():
        return
    if network.bridge_exists() or network.firewall_leftovers():
        raise shell.ClusterToolError(
            f"This machine's network has a Kubernetes in it already (chains named KUBE-... or the bridge "
            f"{settings.BRIDGE}), and it was not started with the state folder '{folders.state}'. Stop that one first; "
            f"if it was a cluster of this tool, with 'cluster.py --state ITS_FOLDER stop'."
        )


def _clean_up_after_a_crash(folders: Settings, progress: shell.Progress) -> None:
    """Begin anew where every program is dead but the machine was not cleaned, as after a killed CI job."""
    was_started = (folders.state / "sysctls.json").exists()
    if was_started and not any(processes.is_running(folders, name) for name in programs.NAMES):
        progress.update("cleaning up after a cluster that was killed")
        teardown.clean(folders, progress)


def _start_programs(folders: Settings, progress: shell.Progress) -> bool:
    """Start what does not run and wait until all are healthy; return whether any was started."""
    cgroups.make()
    network.make(folders)
    (folders.state / "volume-plugins").mkdir(parents=True, exist_ok=True)
    etcd, containerd, apiserver, *rest = programs.all_of(folders)
    started = [program for program in (etcd, containerd) if processes.start(folders, program)]
    for program in (etcd, containerd):
        _wait_for(folders, program, progress)
    started += [apiserver] if processes.start(folders, apiserver) else []
    pause.import_image(folders)
    _wait_for(folders, apiserver, progress)
    started += [program for program in rest if processes.start(folders, program)]
    for program in rest:
        _wait_for(folders, program, progress)
    return bool(started)


def _wait_for(folders: Settings, program: Program, progress: shell.Progress) -> None:
    def ready() -> bool:
        progress.update(f"waiting for {program.name}")
        if not processes.is_running(folders, program.name):
            raise shell.ClusterToolError(
                f"{program.name} ended; the last lines of {folders.logs / program.name}.log:\n"
                f"{processes.last_lines(folders, program.name)}"
            )
        return _is_healthy(folders, program)

    try:
        shell.wait_until(f"{program.name} is ready", ready, _READY_SECONDS)
    except shell.ClusterToolError as error:
        lines = processes.last_lines(folders, program.name)
        raise shell.ClusterToolError(f"{error}\n{lines}") from error


def _is_healthy(folders: Settings, program: Program) -> bool:
    if not program.health.startswith("/"):
        return api.is_healthy(folders, program.health)
    with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
        connection.connect(program.health)
        return True
    return False


def _node_is_ready(folders: Settings) -> bool:
    with suppress(OSError, http.client.HTTPException, json.JSONDecodeError):
        node = api.request(folders, "GET", f"/api/v1/nodes/{settings.NODE_NAME}")
        conditions = node["status"].get("conditions", []) if node else []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return False


def _wait_for_node(folders: Settings, progress: shell.Progress) -> None:
    def ready() -> bool:
        progress.update("waiting for the node")
        return _node_is_ready(folders)

    shell.wait_until("The node is Ready", ready, _READY_SECONDS)


def _run_first_pod(folders: Settings, progress: shell.Progress) -> None:
    """Run a Pod and delete it: a Ready node still lacks a Service Account or its untainting for a moment."""
    name = f"cluster-start-{time.time_ns() // 1_000_000}"
    collection = "/api/v1/namespaces/default/pods"
    pod = {
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "pause", "image": settings.PAUSE_IMAGE, "imagePullPolicy": "Never"}
            ],
        },
    }
    created = False

    def ready() -> bool:
        nonlocal created
        progress.update("waiting for a first Pod to run")
        with suppress(OSError):
            if not created:
                api.request(folders, "POST", collection, pod)
                created = True
            answer = api.request(folders, "GET", f"{collection}/{name}")
            return answer is not None and answer["status"].get("phase") == "Running"
        return False

    try:
        shell.wait_until("A first Pod runs", ready, _READY_SECONDS)
    finally:
        with suppress(OSError):
            api.request(folders, "DELETE", f"{collection}/{name}?gracePeriodSeconds=0")


def kubeconfig(folders: Settings) -> Path:
    """Return the administrator's kubeconfig.

    Raises:
        ClusterToolError: If no cluster was started with this state folder.
    """
    if not folders.kubeconfig.exists():
        raise shell.ClusterToolError(
            f"There is no '{folders.kubeconfig}': no cluster was started with this state folder. Run 'cluster.py start'."
        )
    return folders.kubeconfig
