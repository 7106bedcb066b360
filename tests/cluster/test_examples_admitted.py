"""The examples as kubectl sends them: admitted by the real API server, from any of their forms."""

from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-crm"

pytestmark = pytest.mark.usefixtures("crds")


@pytest.mark.parametrize("server_side", [True, False], ids=["server-side", "client-side"])
@pytest.mark.parametrize(
    ("option", "name", "created"),
    [
        (
            "-f",
            "all-in-one.yaml",
            {"world/slack", "world/crm", "benchmark/crm", "run/crm-oracle", "run/crm-nop"},
        ),
        (
            "-k",
            ".",
            {
                "configmap/slack-world",
                "configmap/crm-bench",
                "world/slack",
                "world/crm",
                "benchmark/crm",
            },
        ),
        ("-f", "run-scripted.yaml", {"run/crm-scripted"}),
    ],
    ids=["all in one", "kustomize", "scripted"],
)
def test_an_example_is_admitted(
    kubectl: Callable[..., str],
    namespace: str,
    option: str,
    name: str,
    created: set[str],
    server_side: bool,
):
    printed = kubectl(
        "apply",
        f"--server-side={server_side}".lower(),
        "--dry-run=server",
        "-n",
        namespace,
        option,
        EXAMPLE / name,
        "-o",
        "name",
    )

    assert {line.replace(".wavetank.dev", "") for line in printed.split()} == created
