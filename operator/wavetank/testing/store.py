"""A real store for tests: its own process, a free port, a key, and clients that hold tokens."""

import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from wavetank.api.wire import Grant, Operation
from wavetank.store.client import StoreClient
from wavetank.store.tokens import make_key, sign

EVERYTHING = (
    Grant(operation=Operation.GET, prefix="/v1"),
    Grant(operation=Operation.CREATE, prefix="/v1"),
)
FAR = datetime(2100, 1, 1, tzinfo=UTC)


class RunningStore:
    """A store process. Stop it and start it again: key, port and objects stay."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.private_pem, self.public_pem = make_key()
        self.key_file = folder.with_name(f"{folder.name}-public.pem")
        self.key_file.write_bytes(self.public_pem)
        self._log_file = folder.with_name(f"{folder.name}.log")
        self._settings = {f"WAVETANK_STORE_{name.upper()}": text for name, text in settings.items()}
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process that runs."""
        if self._process is None:
            raise RuntimeError("the store is not running: call start()")
        return self._process

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._process is not None

    @property
    def log(self) -> str:
        """What it has logged since it was last started."""
        return self._log_file.read_text()

    def start(self) -> None:
        """Start the process and wait until it listens."""
        environment = {
            "WAVETANK_STORE_DIR": str(self.folder),
            "WAVETANK_PUBLIC_KEY_FILE": str(self.key_file),
            "WAVETANK_STORE_HOST": "127.0.0.1",
            "WAVETANK_STORE_LISTEN_PORT": str(self._port),
            **self._settings,
        }
        with self._log_file.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "wavetank.store"], env=environment, stdout=log, stderr=log
            )
        self.wait_for_line("running on http://")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(timeout=20)
        self._process = None
        return code

    def wait_for_line(self, text: str) -> str:
        """Return the first log line that holds a text; wait for it while the store runs."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            is_over = self.process.poll() is not None
            for line in self.log.splitlines(keepends=True):
                if text in line and line.endswith("\n"):
                    return line
            if is_over:
                break
            time.sleep(0.01)
        raise AssertionError(f"no line with {text!r} in: {self.log}")

    def token(self, grants: Sequence[Grant] = EVERYTHING, expires_at: datetime = FAR) -> str:
        """Return a token signed by this store's key."""
        return sign(self.private_pem, grants, expires_at)

    def client(self, grants: Sequence[Grant] = EVERYTHING) -> StoreClient:
        """Return a client; by default one that may do everything."""
        return StoreClient(self.url, self.token(grants))


def _free_port() -> int:
    """Return a port that neither outgoing connections nor NodePorts get: it is still free at a restart."""
    while True:
        port = 20000 + secrets.randbelow(10000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


@contextmanager
def running_store(folder: Path, **settings: str) -> Iterator[RunningStore]:
    """Start a store in a folder and stop it at the end.

    Args:
        folder: For the objects; the key lies beside it.
        settings: Further settings, by the end of their variable: ``max_object_bytes="1000"``.
    """
    store = RunningStore(folder, **settings)
    store.start()
    try:
        yield store
    finally:
        if store.is_running and (code := store.stop()) != 0:
            raise RuntimeError(f"the store ended with exit code {code}: {store.log}")
