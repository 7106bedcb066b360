"""Bundles: digest, packing and its way back, halves, and reading folders."""

import io
import json
import os
import socket
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from wavetank.bundles import pack
from wavetank.bundles.archive import Caps
from wavetank.bundles.paths import clash_faults, path_fault
from wavetank.core.errors import Finding, Severity, SpecError

FILES = {
    "schema/world.json": pack.BundleFile(0o644, b"{}"),
    "tools/close.py": pack.BundleFile(0o755, b"print()"),
    "verifiers/closed.sql": pack.BundleFile(0o644, b"select 1"),
    "solutions/close.json": pack.BundleFile(0o644, b"[]"),
    "scripts/lazy/close.json": pack.BundleFile(0o644, b"[1]"),
    "verifiers.toml": pack.BundleFile(0o644, b""),
}

SEGMENT = st.text(
    st.characters(
        exclude_categories=("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"), exclude_characters="/\\"
    ),
    min_size=1,
    max_size=60,
).filter(lambda text: text not in (".", ".."))
PATH = (
    st.lists(SEGMENT, min_size=1, max_size=5).map("/".join).filter(lambda p: path_fault(p) is None)
)
FILE = st.builds(pack.BundleFile, st.sampled_from([0o644, 0o755]), st.binary(max_size=2000))
ANY_FILES = st.dictionaries(PATH, FILE, max_size=8).filter(lambda files: not clash_faults(files))


def test_the_digest_is_that_of_the_manifest() -> None:
    files = {"b": pack.BundleFile(0o600, b"2"), "a/x": pack.BundleFile(0o711, b"1")}
    manifest = (
        f'[{{"path":"a/x","mode":493,"sha256":"{sha256(b"1").hexdigest()}"}},'
        f'{{"path":"b","mode":420,"sha256":"{sha256(b"2").hexdigest()}"}}]'
    ).encode()

    assert pack.manifest_of(files) == manifest
    assert pack.digest_of(files) == f"sha256:{sha256(manifest).hexdigest()}"
    assert json.loads(manifest)[1] == {
        "path": "b",
        "mode": 0o644,
        "sha256": sha256(b"2").hexdigest(),
    }


def test_the_order_of_files_and_other_mode_bits_change_nothing() -> None:
    turned = {path: pack.BundleFile(f.mode & 0o711, f.data) for path, f in reversed(FILES.items())}

    assert pack.pack(turned) == pack.pack(FILES)
    assert pack.digest_of(turned) == pack.digest_of(FILES)


@pytest.mark.parametrize(
    "changed",
    [
        {"a": pack.BundleFile(0o644, b"2")},
        {"a": pack.BundleFile(0o755, b"1")},
        {"b": pack.BundleFile(0o644, b"1")},
        {"a": pack.BundleFile(0o644, b"1"), "b": pack.BundleFile(0o644, b"")},
        {},
    ],
    ids=["content", "mode", "name", "one more", "one less"],
)
def test_any_change_changes_the_digest(changed: pack.Files) -> None:
    assert pack.digest_of(changed) != pack.digest_of({"a": pack.BundleFile(0o644, b"1")})


def test_others_can_read_what_is_packed_and_it_names_no_owner_and_no_time() -> None:
    plain = zstandard.ZstdDecompressor().decompress(pack.pack(FILES))

    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        found = [(i.name, i.isreg(), i.mode, i.mtime, i.uid, i.gid, i.uname, i.gname) for i in tar]
    assert found == [(path, True, FILES[path].mode, 0, 0, 0, "", "") for path in sorted(FILES)]


@given(ANY_FILES)
def test_whatever_is_packed_comes_back(files: dict[str, pack.BundleFile]) -> None:
    packed = pack.pack(files)

    assert pack.validate_archive(packed) == pack.digest_of(files)
    assert pack.read_archive(packed) == files
    assert pack.pack(dict(reversed(files.items()))) == packed


@pytest.mark.parametrize("as_file", [False, True], ids=["bytes", "file"])
def test_what_is_unpacked_reads_as_what_was_packed(tmp_path: Path, as_file: bool) -> None:
    archive = tmp_path / "bundle"
    archive.write_bytes(pack.pack(FILES))

    digest = pack.unpack(archive if as_file else archive.read_bytes(), tmp_path / "into" / "deep")

    assert digest == pack.digest_of(FILES)
    assert pack.read_folder(tmp_path / "into" / "deep") == FILES


def test_files_are_for_their_owner_to_write_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        pack.unpack(pack.pack(FILES), tmp_path / "into")
    finally:
        os.umask(before)

    assert (tmp_path / "into/tools/close.py").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "into/verifiers.toml").stat().st_mode & 0o7777 == 0o644


def test_a_later_bundle_lies_over_an_earlier_one(tmp_path: Path) -> None:
    over = {
        "schema/world.json": pack.BundleFile(0o755, b"new"),
        "benchmark.json": pack.BundleFile(0o644, b"{}"),
    }
    pack.unpack(pack.pack(FILES), tmp_path)

    pack.unpack(pack.pack(over), tmp_path)

    assert pack.read_folder(tmp_path) == {**FILES, **over}


def test_an_overlay_replaces_a_link_and_does_not_write_through_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("safe")
    into = tmp_path / "into"
    into.mkdir()
    (into / "a").symlink_to(outside)

    pack.unpack(pack.pack({"a": pack.BundleFile(0o644, b"new")}), into)

    assert outside.read_text() == "safe"
    assert pack.read_folder(into) == {"a": pack.BundleFile(0o644, b"new")}


def test_a_linked_folder_is_not_entered(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    into = tmp_path / "into"
    into.mkdir()
    (into / "a").symlink_to(outside)

    with pytest.raises(SpecError, match="a/b: meets a file in place of a folder"):
        pack.unpack(pack.pack({"a/b": pack.BundleFile(0o644, b"new")}), into)

    assert list(outside.iterdir()) == []


def test_a_file_that_meets_a_folder_is_refused(tmp_path: Path) -> None:
    pack.unpack(pack.pack({"a/b": pack.BundleFile(0o644, b"")}), tmp_path)

    with pytest.raises(SpecError, match="a: meets a file in place of a folder, or the reverse"):
        pack.unpack(pack.pack({"a": pack.BundleFile(0o644, b"")}), tmp_path)


def test_every_bad_name_is_reported_at_once() -> None:
    file = pack.BundleFile(0o644, b"")

    with pytest.raises(SpecError) as caught:
        pack.pack({"../a": file, "b\n": file, "c/d": file, "C/e": file, "c": file})

    assert [finding.path for finding in caught.value.findings] == ["../a", "'b\\n'", "c", "c/d"]


def test_the_halves_are_all_files_by_who_may_fetch_them() -> None:
    assert pack.split(FILES) == pack.Halves(
        agent={
            path: FILES[path] for path in ("schema/world.json", "tools/close.py", "verifiers.toml")
        },
        grader={"verifiers/closed.sql": FILES["verifiers/closed.sql"]},
        solutions={
            path: FILES[path] for path in ("solutions/close.json", "scripts/lazy/close.json")
        },
    )


@given(ANY_FILES)
def test_the_halves_lose_and_double_nothing(files: dict[str, pack.BundleFile]) -> None:
    halves = pack.split(files)

    assert {**halves.agent, **halves.grader, **halves.solutions} == files
    assert len(halves.agent) + len(halves.grader) + len(halves.solutions) == len(files)


def test_only_what_the_list_names_is_left_out_of_a_folder(tmp_path: Path) -> None:
    kept = {"a.py", ".hidden", "deep/er/b.txt", "git", "pycache/c"}
    left_out = {".git/config", "x/__pycache__/a.pyc", "b.pyc", ".env", "deep/.DS_Store", "c~"}
    for path in kept | left_out:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)

    assert set(pack.read_folder(tmp_path)) == kept


def test_links_and_devices_in_a_folder_are_all_refused(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "folder").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))

        with pytest.raises(SpecError) as caught:
            pack.read_folder(tmp_path)

    link = "is a symbolic link: put the file itself here"
    other = "is neither file nor folder: remove it"
    assert caught.value.findings == tuple(
        Finding(Severity.FAULT, path, message)
        for path, message in [
            ("broken", link),
            ("folder", link),
            ("link", link),
            ("pipe", other),
            ("socket", other),
        ]
    )


def test_a_name_that_is_no_utf8_is_refused_in_words_that_can_be_printed(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff")).write_text("x")

    with pytest.raises(SpecError) as caught:
        pack.read_folder(tmp_path)

    assert str(caught.value).startswith(r"'a\udcff': holds a control, formatting or unassigned")


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="nowhere: is no folder"):
        pack.read_folder(tmp_path / "nowhere")


def test_a_folder_is_read_up_to_the_caps_only(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}").write_bytes(b"12345")

    with pytest.raises(SpecError, match="3: is beyond 3 files or"):
        pack.read_folder(tmp_path, Caps(files=3))
    with pytest.raises(SpecError, match="2: is beyond 10000 files or 14 bytes"):
        pack.read_folder(tmp_path, Caps(total_bytes=14))
