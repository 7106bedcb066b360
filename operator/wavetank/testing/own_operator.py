"""The operator as a process of the test, so that it can be killed; the cluster's own stands still."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SYSTEM = "wavetank-system"
OPERATOR = "deployment/wavetank-operator"

_IMAGES = {
    f"WAVETANK_IMAGE_{name.upper()}": f"wavetank.local/{name}:dev"
    for name in ("world", "agent", "verifier")
}


class OperatorProcess:
    """Starts and kills ``python -m wavetank.controller``; at most one at a time."""

    def __init__(self, kubeconfig: Path, log: Path) -> None:
        self._log = log
        self._environment = {
            **os.environ,  # noqa: TID251 - handed on, not read
            **_IMAGES,
            "WAVETANK_KUBECONFIG": str(kubeconfig),
            "WAVETANK_NAMESPACE": SYSTEM,
            "WAVETANK_VERSION": "test",
            "WAVETANK_HEALTH_PORT": "0",
            "WAVETANK_RESYNC_SECONDS": "10",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; what it logs is appended to the log."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "wavetank.controller"],
                env=self._environment,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """End it as a crash would: no last write, no last word."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def has_ended(self) -> bool:
        """Tell whether it ended by itself."""
        return self._process is not None and self._process.poll() is not None


@contextmanager
def own_operator(kubeconfig: Path, log: Path) -> Iterator[OperatorProcess]:
    """Put the cluster's operator to rest while a test runs its own."""
    kubectl = ["kubectl", "--kubeconfig", str(kubeconfig), "-n", SYSTEM]
    _call([*kubectl, "scale", OPERATOR, "--replicas=0"])
    selector = "--selector=app.kubernetes.io/component=operator"
    _call([*kubectl, "wait", "--for=delete", "pod", selector, "--timeout=90s"])
    process = OperatorProcess(kubeconfig, log)
    try:
        yield process
    finally:
        process.kill()
        _call([*kubectl, "scale", OPERATOR, "--replicas=1"])
        _call([*kubectl, "rollout", "status", OPERATOR, "--timeout=90s"])


def _call(command: list[str]) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if ended.returncode != 0:
        raise AssertionError(ended.stderr)
