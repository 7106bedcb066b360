"""docs/store.md says what the code does."""

import re
from dataclasses import fields
from pathlib import Path

from wavetank.bundles import pack
from wavetank.store.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "store.md").read_text()


def test_the_page_lists_what_is_left_out_of_folders() -> None:
    (listed,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)

    assert tuple(listed.split()) == pack.IGNORED


def test_the_page_lists_every_setting() -> None:
    documented = [
        re.findall(r"WAVETANK_[A-Z_]+", field)
        for field in PAGE.splitlines()
        if "| `WAVETANK" in field
    ]
    in_code = re.findall(
        r'^    """(WAVETANK_[A-Z_]+)',
        Path(pack.__file__).parents[1].joinpath("store/settings.py").read_text(),
        re.MULTILINE,
    )

    assert len(in_code) == len(fields(Settings))
    assert sorted(names[0] for names in documented) == sorted(in_code)
