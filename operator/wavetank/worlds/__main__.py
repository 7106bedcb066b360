"""``python -m wavetank.worlds``: the world container of a rollout Pod."""

import asyncio
import logging
import sys

from wavetank.core.errors import SpecError
from wavetank.worlds.container import run
from wavetank.worlds.settings import read_settings


def main() -> int:
    """Serve one session; return the exit code."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout
    )
    # Every request to the store would be a line otherwise.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        settings = read_settings()
    except SpecError as error:
        logging.getLogger("wavetank.worlds").critical("end error=%r", str(error))
        return 2
    return asyncio.run(run(settings))


if __name__ == "__main__":
    sys.exit(main())
