"""The store's settings: all faults at once, defaults otherwise."""

from pathlib import Path

import pytest

from wavetank.core.errors import SpecError
from wavetank.store.settings import Settings, read_settings

NEEDED = {"WAVETANK_STORE_DIR": "/data", "WAVETANK_PUBLIC_KEY_FILE": "/key/public.pem"}


def test_a_folder_and_a_key_are_enough() -> None:
    assert read_settings(NEEDED) == Settings(Path("/data"), Path("/key/public.pem"))


def test_every_variable_is_read() -> None:
    given = {
        **NEEDED,
        "WAVETANK_STORE_URL": "s3://bucket",
        "WAVETANK_STORE_HOST": "::",
        "WAVETANK_STORE_LISTEN_PORT": "1",
        "WAVETANK_STORE_MAX_OBJECT_BYTES": "2",
        "WAVETANK_STORE_MIN_FREE_BYTES": "3",
        "WAVETANK_STORE_IDLE_SECONDS": "4",
    }

    assert read_settings(given) == Settings(
        Path("/data"), Path("/key/public.pem"), "s3://bucket", "::", 1, 2, 3, 4
    )


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        read_settings({"WAVETANK_STORE_LISTEN_PORT": "-1", "WAVETANK_STORE_IDLE_SECONDS": "\u0663"})

    assert [str(finding) for finding in caught.value.findings] == [
        "WAVETANK_STORE_DIR: is not set: give a path",
        "WAVETANK_PUBLIC_KEY_FILE: is not set: give a path",
        "WAVETANK_STORE_LISTEN_PORT: is '-1': give a whole number, at least 0",
        "WAVETANK_STORE_IDLE_SECONDS: is '\u0663': give a whole number, at least 0",
    ]
