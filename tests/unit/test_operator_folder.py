"""The folder operator/ must never shadow the standard library's module of that name."""

import operator
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_operator_is_the_standard_librarys_module() -> None:
    stdlib = Path(sysconfig.get_path("stdlib")).resolve()

    assert Path(operator.__file__).resolve().is_relative_to(stdlib)


def test_the_operator_folder_is_no_package() -> None:
    assert (ROOT / "operator" / "wavetank" / "__init__.py").is_file()
    assert not (ROOT / "operator" / "__init__.py").exists()
