"""``python -m wavetank.store``: the store of an installation."""

import logging
import signal
import sys

import uvicorn

from wavetank.core.errors import SpecError
from wavetank.store import clock
from wavetank.store.objects import Objects
from wavetank.store.server import create_app
from wavetank.store.settings import Settings, read_settings

_SHUTDOWN_SECONDS = 10
"""How long open uploads may go on after SIGTERM; the Pod's grace period is longer."""


def main() -> int:
    """Serve until SIGTERM; return the exit code."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout
    )
    try:
        return serve(read_settings())
    except (SpecError, OSError) as error:
        logging.getLogger("wavetank.store").critical("end error=%r", str(error))
        return 2


def serve(settings: Settings) -> int:
    """Serve with these settings until SIGTERM."""
    objects = Objects(settings)
    logging.getLogger("wavetank.store").info(
        "start folder=%s url=%r swept=%d", settings.folder, settings.url, objects.sweep()
    )
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(settings, objects, clock.now),
            host=settings.host,
            port=settings.port,
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,  # what a sender says of its own address is not logged
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
    )
    # uvicorn raises the signal again when it has ended, for whoever handled it before: nobody.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    server.run()
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
