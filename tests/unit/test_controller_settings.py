"""What the operator reads from its environment."""

from pathlib import Path

import pytest

from wavetank.controller.logs import LogFormat
from wavetank.controller.settings import Settings, from_environment
from wavetank.core.errors import SpecError
from wavetank.kube.connection import Kubeconfig

NEEDED = {
    "WAVETANK_NAMESPACE": "wavetank",
    "WAVETANK_IMAGE_WORLD": "world:1",
    "WAVETANK_IMAGE_AGENT": "agent:1",
    "WAVETANK_IMAGE_VERIFIER": "verifier:1",
    "WAVETANK_VERSION": "0.1.0",
}


def test_what_is_not_set_has_its_default() -> None:
    assert from_environment(NEEDED) == Settings(
        namespace="wavetank",
        image_world="world:1",
        image_agent="agent:1",
        image_verifier="verifier:1",
        version="0.1.0",
    )


def test_every_setting_can_be_set() -> None:
    environment = {
        **NEEDED,
        "WAVETANK_WATCH_NAMESPACE": "bench",
        "WAVETANK_STORE_SERVICE": "store",
        "WAVETANK_RESYNC_SECONDS": "5",
        "WAVETANK_WRITE_RATE": "12.5",
        "WAVETANK_WORKERS": "3",
        "WAVETANK_HEALTH_PORT": "0",
        "WAVETANK_SILENCE_SECONDS": "60",
        "WAVETANK_LOG_FORMAT": "JSON",
        "WAVETANK_LOG_LEVEL": "debug",
        "WAVETANK_KUBECONFIG": "/etc/kubeconfig",
        "WAVETANK_CONTEXT": "kind",
    }

    assert from_environment(environment) == Settings(
        namespace="wavetank",
        image_world="world:1",
        image_agent="agent:1",
        image_verifier="verifier:1",
        version="0.1.0",
        watch_namespace="bench",
        store_service="store",
        resync_seconds=5.0,
        write_rate=12.5,
        workers=3,
        health_port=0,
        silence_seconds=60.0,
        log_format=LogFormat.JSON,
        log_level="DEBUG",
        kubeconfig=Kubeconfig(Path("/etc/kubeconfig"), "kind"),
    )


def test_all_faults_are_told_at_once() -> None:
    environment = {
        "WAVETANK_NAMESPACE": "wavetank",
        "WAVETANK_IMAGE_WORLD": "world:1",
        "WAVETANK_VERSION": "0.1.0",
        "WAVETANK_RESYNC_SECONDS": "soon",
        "WAVETANK_WRITE_RATE": "nan",
        "WAVETANK_LOG_FORMAT": "xml",
    }

    with pytest.raises(SpecError) as raised:
        from_environment(environment)

    missing = "is not set. The chart sets it; without the chart, export it."
    assert str(raised.value).splitlines() == [
        f"WAVETANK_IMAGE_AGENT: {missing}",
        f"WAVETANK_IMAGE_VERIFIER: {missing}",
        "WAVETANK_RESYNC_SECONDS: is 'soon'. Give a number of at least 1.",
        "WAVETANK_WRITE_RATE: is 'nan'. Give a number of at least 0.1.",
        "WAVETANK_LOG_FORMAT: is 'xml'. Give one of: text, json.",
    ]
