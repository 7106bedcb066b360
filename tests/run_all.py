"""Run the tests of every tier in one pytest session, with the cluster that the last ones need.

The cluster is started when the first test that needs it comes up, and only if no test failed until
then. What was started here is stopped before pytest prints its summary; ``KEEP=1`` leaves it up,
and a cluster that was up before is left alone. Further arguments go to pytest. Tests that failed are
run a second time, by themselves.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
CLUSTER = TESTS / "cluster" / "cluster.py"
AGAIN = "--last-failed"
NEEDS_CLUSTER = {"chart", "cluster", "prove"}  # chart: the helm that the cluster's script builds


class ClusterForTests:
    """Starts the cluster for the first test that needs it, and stops what it started."""

    def __init__(self) -> None:
        self.is_ready = False
        self.is_ours = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if not self.is_ready and any(item.get_closest_marker(name) for name in NEEDS_CLUSTER):
            self.prepare(item.session)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.is_ours and os.environ.get("KEEP") != "1":
            self.call(session, "stop")

    def prepare(self, session: pytest.Session) -> None:
        self.is_ready = True
        if self.call(session, "status", quiet=True) != 0:
            if session.testsfailed:
                self.give_up(session, "tests failed before those that need the cluster")
            self.is_ours = True
            self.must(session, "start")
        self.must(session, "images")
        self.must(session, "build-helm")
        # The kubectl and helm that fit this cluster, before any that the machine has.
        programs = [json.loads(answer_of("status", "--json"))["kubectl"], answer_of("build-helm")]
        folders = [str(Path(program).parent) for program in programs]
        os.environ["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])

    def must(self, session: pytest.Session, command: str) -> None:
        if self.call(session, command) != 0:
            self.give_up(session, f"{CLUSTER.name} {command} did not succeed; its output is above")

    def give_up(self, session: pytest.Session, reason: str) -> None:
        # Not pytest.exit(), which would print its reason after the summary line.
        session.shouldfail = reason
        raise session.Failed(reason)

    def call(self, session: pytest.Session, command: str, *, quiet: bool = False) -> int:
        capture = session.config.pluginmanager.getplugin("capturemanager")
        assert capture is not None
        with capture.global_and_fixture_disabled():
            if not quiet:
                print(f"\n{CLUSTER.name} {command}", flush=True)
            started = time.monotonic()
            ended = subprocess.run(
                [sys.executable, CLUSTER, command], capture_output=quiet, check=False
            )
            if not quiet:
                seconds = time.monotonic() - started
                print(f"{CLUSTER.name} {command}: {seconds:.0f} s", flush=True)
        return ended.returncode


def answer_of(*command: str) -> str:
    asked = subprocess.run([sys.executable, CLUSTER, *command], capture_output=True, check=True)
    return asked.stdout.decode().strip()


def main(arguments: list[str]) -> int:
    options = ["-m", "not prove", "--durations=10", "--durations-min=5", *arguments]
    code = int(pytest.main([f"--rootdir={TESTS.parent}", *options], plugins=[ClusterForTests()]))
    if code != pytest.ExitCode.TESTS_FAILED or AGAIN in arguments:
        return code
    # Shared machines stall for seconds at times. What fails twice fails; both summaries are shown.
    print("\nOnce more, only what failed:", flush=True)
    return subprocess.call([sys.executable, __file__, AGAIN, *arguments])


if __name__ == "__main__":
    os.chdir(TESTS.parent)
    sys.exit(main(sys.argv[1:]))
