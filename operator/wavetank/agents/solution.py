"""``python -m wavetank.agents.solution``: the init container of ``oracle`` and ``scripted`` Pods.

It alone may fetch solutions; it leaves the one that is asked for where the agent can read it.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from wavetank.agents.settings import SolutionSettings, read_solution_settings
from wavetank.api.wire import SolutionSpec
from wavetank.bundles.pack import unpack, validate_archive
from wavetank.core.errors import SpecError
from wavetank.store.client import StoreClient, StoreRefused, StoreUnavailable, until

_SECONDS = 300.0
"""How long the store is asked while it is away; the operator's own limit is shorter."""


class NoSolutionError(Exception):
    """There is none, or none that can be had."""


async def fetch(spec: SolutionSpec, settings: SolutionSettings) -> None:
    """Write the file that is asked for.

    Raises:
        NoSolutionError: When the bundles do not hold it, or are not what they should be.
        StoreUnavailable: When the store stays away.
        StoreRefused: When the store will not give the bundles.
    """
    last = asyncio.get_running_loop().time() + _SECONDS
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        async with StoreClient(spec.store, settings.token_file.read_text) as store:
            for ref in (each for each in spec.bundles if each.alias == ""):
                archive = await until(last, lambda ref=ref: store.get(f"/v1/bundles/{ref.digest}"))  # type: ignore[misc]
                if validate_archive(archive) != ref.digest:
                    raise NoSolutionError(f"the store gave other files than {ref.digest}")
                unpack(archive, root)
        found = root / spec.path
        if not found.is_file():
            raise NoSolutionError(f"the benchmark has no {spec.path}, which this agent replays")
        settings.target.write_bytes(found.read_bytes())


def main() -> int:
    """Run the init container; return the exit code."""
    settings = read_solution_settings()
    spec = SolutionSpec.model_validate_json(settings.wanted)
    try:
        asyncio.run(fetch(spec, settings))
    except (NoSolutionError, StoreUnavailable, StoreRefused, SpecError) as error:
        # The end of the log is this container's termination message.
        sys.stderr.write(f"solution: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
