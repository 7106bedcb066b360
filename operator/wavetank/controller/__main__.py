"""``python -m wavetank.controller``: the operator as a process."""

import asyncio
import sys

from wavetank.controller import clock, logs, settings
from wavetank.controller.reconcilers import make_reconcilers
from wavetank.controller.shell import run_operator
from wavetank.core.errors import ClusterError, SpecError


def main() -> int:
    """Run the operator; return the process's exit code."""
    try:
        told = settings.from_environment()
        logs.set_up(told.log_format, told.log_level)
        asyncio.run(run_operator(told, make_reconcilers, clock.now))
    except (SpecError, ClusterError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
