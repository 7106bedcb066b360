"""docs/cli.md against the commands themselves."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "cli.md"


def test_the_page_is_what_the_commands_say(tmp_path: Path):
    subprocess.run([sys.executable, ROOT / "docs" / "cli.py", tmp_path], check=True)

    assert (tmp_path / "cli.md").read_text() == PAGE.read_text(), "run: python docs/cli.py"
