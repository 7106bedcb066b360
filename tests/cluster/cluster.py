#!/usr/bin/env python3
"""A real single-node Kubernetes on this machine, for tests and the demo; see README.md beside this file.

Standard library only: it runs before any virtual environment exists.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from clusterlib import build, images, lifecycle, packages, settings, shell, teardown
from clusterlib.settings import Settings

_ROOT_COMMANDS = {"start", "stop", "images"}
_NEEDS_ROOT = 2
_FAILED = 1


def main(argv: list[str]) -> int:
    """Run one command and return the exit code: 0, 1 (it did not work) or 2 (it was called wrongly)."""
    arguments = _parser().parse_args(argv)
    folders = settings.from_environment(arguments.state, arguments.cache)
    try:
        if arguments.command in _ROOT_COMMANDS:
            shell.require_root(arguments.command)
        return _COMMANDS[arguments.command](folders, arguments)
    except shell.NeedsRootError as error:
        shell.say(str(error))
        return _NEEDS_ROOT
    except shell.ClusterToolError as error:
        shell.say(str(error))
        return _FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cluster.py", description="A single-node Kubernetes for tests."
    )
    parser.add_argument(
        "--state", type=_folder, help="state folder; default /var/lib/wavetank-cluster"
    )
    parser.add_argument("--cache", type=_folder, help="cache folder; default ~/.cache/wavetank")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("packages", help="install what Debian must bring")
    commands.add_parser("build", help="build Kubernetes and the sandbox program, fetch etcd")
    commands.add_parser("build-helm", help="build helm and print its path")
    commands.add_parser("start", help="start the cluster and print the kubeconfig's path")
    stop = commands.add_parser("stop", help="stop the cluster and remove it from the machine")
    stop.add_argument("--purge", action="store_true", help="delete the state folder too")
    status = commands.add_parser("status", help="say what runs; exit code 1 unless all does")
    status.add_argument("--json", action="store_true", help="as JSON")
    commands.add_parser("kubeconfig", help="print the kubeconfig's path")
    images_parser = commands.add_parser("images", help="build the project's images and import them")
    images_parser.add_argument(
        "names", nargs="*", metavar="NAME", help="folders below images/; default all"
    )
    images_parser.add_argument("--tag", default="dev", help="default dev: wavetank.local/NAME:dev")
    images_parser.add_argument(
        "--no-import", action="store_true", help="build only; needs no running cluster"
    )
    kubectl = commands.add_parser("kubectl", help="run kubectl on the cluster")
    kubectl.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def _folder(text: str) -> Path:
    return Path(text).absolute()


def _packages(_folders: Settings, _arguments: argparse.Namespace) -> int:
    packages.install()
    return 0


def _build(folders: Settings, _arguments: argparse.Namespace) -> int:
    build.build(folders)
    shell.result(str(folders.programs))
    return 0


def _build_helm(folders: Settings, _arguments: argparse.Namespace) -> int:
    shell.result(str(build.build_helm(folders)))
    return 0


def _start(folders: Settings, _arguments: argparse.Namespace) -> int:
    lifecycle.start(folders)
    shell.result(str(folders.kubeconfig))
    return 0


def _stop(folders: Settings, arguments: argparse.Namespace) -> int:
    remaining = teardown.stop(folders, purge=arguments.purge)
    for line in remaining:
        shell.say(f"left: {line}")
    return _FAILED if remaining else 0


def _status(folders: Settings, arguments: argparse.Namespace) -> int:
    status = lifecycle.status(folders)
    if arguments.json:
        shell.result(json.dumps(status, indent=2))
    else:
        lines = [
            f"{name:24} {'healthy' if good else 'down'}"
            for name, good in status["programs"].items()
        ]
        lines += [
            f"{name:24} {status[name]}" for name in ("kubeconfig", "kubectl", "state", "logs")
        ]
        shell.result("\n".join(lines))
    return 0 if status["running"] else _FAILED


def _images(folders: Settings, arguments: argparse.Namespace) -> int:
    packages.install()
    wanted = not arguments.no_import
    for image in images.make(folders, arguments.names, arguments.tag, import_into_cluster=wanted):
        shell.result(f"{image.reference} {image.digest}")
    return 0


def _kubeconfig(folders: Settings, _arguments: argparse.Namespace) -> int:
    shell.result(str(lifecycle.kubeconfig(folders)))
    return 0


def _kubectl(folders: Settings, arguments: argparse.Namespace) -> int:
    program = str(folders.programs / "kubectl")
    environment = settings.program_environment(KUBECONFIG=str(lifecycle.kubeconfig(folders)))
    os.execve(program, ["kubectl", *arguments.arguments], environment)


_COMMANDS = {
    "packages": _packages,
    "build": _build,
    "build-helm": _build_helm,
    "start": _start,
    "stop": _stop,
    "status": _status,
    "images": _images,
    "kubeconfig": _kubeconfig,
    "kubectl": _kubectl,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
