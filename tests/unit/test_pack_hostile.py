"""Archives that mean harm (threat S14): refused, before anything is written, in little memory."""

import gzip
import io
import struct
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from wavetank.bundles import pack
from wavetank.bundles.archive import Caps
from wavetank.core.errors import SpecError

BLOCK = 512
END = bytes(2 * BLOCK)


def header(name: bytes = b"a", **fields: bytes) -> bytes:
    """A correct ustar header, but for what is asked for: any field may hold anything."""
    parts = {
        "name": name,
        "mode": b"0000644\0",
        "uid": b"0000000\0",
        "gid": b"0000000\0",
        "size": b"00000000000\0",
        "mtime": b"00000000000\0",
        "checksum": b"        ",
        "kind": b"0",
        "link": b"",
        "magic": b"ustar\00000",
        "owners": b"",
        "devices": b"",
        "prefix": b"",
        **fields,
    }
    widths = [100, 8, 8, 8, 12, 12, 8, 1, 100, 8, 64, 16, 167]
    block = b"".join(
        text.ljust(width, b"\0") for text, width in zip(parts.values(), widths, strict=True)
    )
    if "checksum" in fields:
        return block
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def file(name: bytes = b"a", data: bytes = b"", **fields: bytes) -> bytes:
    padded = data + bytes(-len(data) % BLOCK)
    return header(name, **{"size": b"%011o\0" % len(data), **fields}) + padded


def extended(body: bytes, **fields: bytes) -> bytes:
    return file(b"././@PaxHeader", body, kind=b"x", **fields)


def record(key: bytes, value: bytes) -> bytes:
    length = len(key) + len(value) + 3
    while len(b"%d" % length) + len(key) + len(value) + 3 != length:
        length += 1
    return b"%d %s=%s\n" % (length, key, value)


def named(path: bytes) -> bytes:
    return extended(record(b"path", path)) + file()


def zipped(plain: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(plain)


def a_zstd_bomb() -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    size = 100 * 1024 * 1024
    parts = [packer.compress(header(size=b"%011o\0" % size))]
    parts += [packer.compress(bytes(1024 * 1024)) for _ in range(100)]
    return b"".join([*parts, packer.compress(END), packer.flush()])


def a_wide_window() -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packer.compress(file() + END) + packer.flush()


def too_many_files() -> bytes:
    return zipped(b"".join(file(b"%d" % number) for number in range(10_001)) + END)


def deep_links() -> bytes:
    """The trick of CVE-2025-4517: links whose resolved path is longer than PATH_MAX."""
    made = b""
    step = b"d" * 120
    path = b""
    for letter in b"abcdefghijklmnop":
        made += file(path + step, kind=b"5", mode=b"0000755\0") if len(path) < 80 else b""
        made += file(path[:80] + bytes([letter]), kind=b"2", link=step)
        path += bytes([letter]) + b"/"
    return made + file(b"escape", kind=b"1", link=b"a/../../../etc/passwd")


HOSTILE: dict[str, Callable[[], bytes]] = {
    "parent": lambda: zipped(file(b"../escaped") + END),
    "parent further in": lambda: zipped(file(b"a/../../escaped") + END),
    "parent in a prefix": lambda: zipped(file(b"escaped", prefix=b"..") + END),
    "parent in an extended header": lambda: zipped(named(b"../escaped") + END),
    "absolute": lambda: zipped(file(b"/escaped") + END),
    "absolute by an empty first segment": lambda: zipped(file(b"//escaped") + END),
    "here": lambda: zipped(file(b"./a") + END),
    "empty segment": lambda: zipped(file(b"a//b") + END),
    "no name": lambda: zipped(file(b"") + END),
    "folder's slash": lambda: zipped(file(b"a/") + END),
    "backslashes": lambda: zipped(file(b"..\\escaped") + END),
    "symbolic link": lambda: zipped(file(kind=b"2", link=b"/etc/passwd") + END),
    "link, then a file through it": lambda: zipped(
        file(b"d", kind=b"2", link=b"..") + file(b"d/escaped", b"x") + END
    ),
    "hard link": lambda: zipped(file(kind=b"1", link=b"/etc/passwd") + END),
    "regular file with a link's target": lambda: zipped(file(link=b"/etc/passwd") + END),
    "links longer than PATH_MAX": lambda: zipped(deep_links() + END),
    "character device": lambda: zipped(file(kind=b"3") + END),
    "block device": lambda: zipped(file(kind=b"4") + END),
    "named pipe": lambda: zipped(file(kind=b"6") + END),
    "folder": lambda: zipped(file(kind=b"5") + END),
    "contiguous file": lambda: zipped(file(kind=b"7") + END),
    "sparse file": lambda: zipped(file(kind=b"S") + END),
    "sparse file by extended header": lambda: zipped(
        extended(record(b"GNU.sparse.realsize", b"99999999999")) + file() + END
    ),
    "long name in GNU's form": lambda: zipped(file(b"././@LongLink", b"x" * 300, kind=b"L") + END),
    "global extended header": lambda: zipped(file(b"g", record(b"path", b"x"), kind=b"g") + END),
    "setuid": lambda: zipped(file(mode=b"0004755\0") + END),
    "setgid": lambda: zipped(file(mode=b"0002755\0") + END),
    "the same name twice": lambda: zipped(file(b"a", b"1") + file(b"a", b"2") + END),
    "names that differ in case": lambda: zipped(file(b"Read") + file(b"read") + END),
    "folders that differ in case": lambda: zipped(file(b"D/a") + file(b"d/b") + END),
    "names that differ in Unicode form": lambda: zipped(
        named("\u00e9".encode()) + named("e\u0301".encode()) + END
    ),
    "file and folder of one name": lambda: zipped(file(b"a") + file(b"a/b") + END),
    "folder and file of one name": lambda: zipped(file(b"a/b") + file(b"a") + END),
    "NUL within a name": lambda: zipped(file(b"a\0b") + END),
    "NUL within an extended name": lambda: zipped(named(b"a\0b") + END),
    "text that runs from right to left": lambda: zipped(named("a\u202egpj.py".encode()) + END),
    "zero-width space": lambda: zipped(named("a\u200bb".encode()) + END),
    "line end in a name": lambda: zipped(file(b"a\nb") + END),
    "escape sequence in a name": lambda: zipped(file(b"a\x1b[2J") + END),
    "name that is no UTF-8": lambda: zipped(file(b"a\xff") + END),
    "surrogate in a name": lambda: zipped(named(b"a\xed\xa0\x80") + END),
    "path of 513 bytes": lambda: zipped(named(b"/".join([b"x" * 56] * 9) + b"y") + END),
    "segment of 256 bytes": lambda: zipped(named(b"x" * 256) + END),
    "17 folders deep": lambda: zipped(named(b"a/" * 17 + b"a") + END),
    "extended header of 8 GiB": lambda: zipped(extended(b"", size=b"77777777777\0") + file() + END),
    "extended header of nothing": lambda: zipped(extended(b"") + file() + END),
    "extended size": lambda: zipped(extended(record(b"size", b"9")) + file() + END),
    "extended path and size": lambda: zipped(
        extended(record(b"path", b"b") + record(b"size", b"9")) + file() + END
    ),
    "extended link": lambda: zipped(extended(record(b"linkpath", b"/etc")) + file() + END),
    "extended header with a wrong length": lambda: zipped(extended(b"99 path=a\n") + file() + END),
    "extended header twice": lambda: zipped(extended(record(b"path", b"b")) + named(b"a") + END),
    "extended header at the end": lambda: zipped(extended(record(b"path", b"b")) + END),
    "size in base 256": lambda: zipped(file(size=b"\x80" + struct.pack(">3xQ", 1 << 40)) + END),
    "negative size": lambda: zipped(file(size=b"-0000000001\0") + END),
    "no size": lambda: zipped(file(size=b"\0" * 12) + END),
    "size that is no number": lambda: zipped(file(size=b"0000000x000\0") + END),
    "mode that is no number": lambda: zipped(file(mode=b"rw-r--r-") + END),
    "more promised than there is": lambda: zipped(file(size=b"00000002000\0") + END),
    "wrong check sum": lambda: zipped(header(checksum=b"000001\0 ") + END),
    "form of 1979": lambda: zipped(file(magic=b"") + END),
    "form of old GNU tar": lambda: zipped(file(magic=b"ustar  \0") + END),
    "cut in a header": lambda: zipped(file()[:300]),
    "cut in a file": lambda: zipped(file(b"a", b"x" * 1000)[:700]),
    "no end": lambda: zipped(file()),
    "half an end": lambda: zipped(file() + bytes(BLOCK)),
    "files after the end": lambda: zipped(file() + END + file(b"hidden") + END),
    "text after the end": lambda: zipped(file() + END + b"hidden"),
    "megabytes of zeros after the end": lambda: zipped(file() + END + bytes(1 << 20)),
    "second frame with files": lambda: zipped(file() + END) + zipped(file(b"hidden") + END),
    "text after the frame": lambda: zipped(file() + END) + b"hidden",
    "zstd bomb": a_zstd_bomb,
    "window of 128 MiB": a_wide_window,
    "10,001 files": too_many_files,
    "cut frame": lambda: zipped(file(b"a", bytes(range(256)) * 9) + END)[:-40],
    "damaged frame": lambda: zipped(file() + END)[:7] + b"\xff" * 20,
    "gzip": lambda: gzip.compress(file() + END),
    "plain tar": lambda: file() + END,
    "nothing": lambda: b"",
    "frame of nothing": lambda: zipped(b""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(HOSTILE[name]())
    into = tmp_path / "deep" / "into"
    into.mkdir(parents=True)

    tracemalloc.start()
    with pytest.raises(SpecError) as caught:
        pack.unpack(archive, into)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    with pytest.raises(SpecError):
        pack.read_archive(archive)

    (finding,) = caught.value.findings
    assert finding.message
    assert str(finding).isprintable()
    assert sorted(tmp_path.rglob("*")) == [archive, tmp_path / "deep", into]
    assert peak < 16 * 1024 * 1024


def test_the_builder_of_these_archives_makes_good_ones_too(tmp_path: Path) -> None:
    plain = file(b"a", b"1") + named("\u00e9/b".encode()) + file(b"c", prefix=b"p/q") + END
    padded = plain + bytes(-len(plain) % tarfile.RECORDSIZE)

    for good in (plain, padded):
        assert pack.unpack(zipped(good), tmp_path) == pack.digest_of(
            {
                "a": pack.BundleFile(0o644, b"1"),
                "\u00e9/b": pack.BundleFile(0o644, b""),
                "p/q/c": pack.BundleFile(0o644, b""),
            }
        )


def test_what_pythons_tarfile_writes_in_the_pax_form_is_read() -> None:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in ("a", "d" * 80 + "/" + "e" * 80, "ü" * 100):
            info = tarfile.TarInfo(name)
            info.size = 3
            tar.addfile(info, io.BytesIO(b"abc"))

    assert pack.validate_archive(zipped(plain.getvalue())) == pack.digest_of(
        {
            name: pack.BundleFile(0o644, b"abc")
            for name in ("a", "d" * 80 + "/" + "e" * 80, "ü" * 100)
        }
    )


def test_the_caps_hold_to_the_byte() -> None:
    packed = pack.pack({name: pack.BundleFile(0o644, b"x" * 500) for name in "ab"})

    assert pack.validate_archive(packed, Caps(files=2, total_bytes=1000))
    with pytest.raises(SpecError, match="b: brings the files to 1000 bytes: at most 999"):
        pack.validate_archive(packed, Caps(total_bytes=999))
    with pytest.raises(SpecError, match="b: is one too many: at most 1 files"):
        pack.validate_archive(packed, Caps(files=1))
    with pytest.raises(SpecError, match="and 2 for each packed byte are allowed"):
        pack.validate_archive(packed, Caps(ratio=2, ratio_floor_bytes=0))
