"""Which code looks at which kind."""

from collections.abc import Mapping

from wavetank.controller.queue import Reconciler
from wavetank.controller.shell import Shell


def make_reconcilers(shell: Shell) -> Mapping[str, Reconciler]:
    """Return the reconcilers by kind."""
    del shell
    return {}
