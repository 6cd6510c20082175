"""Downloads from a server on this machine: checked, resumed, refused."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from dualfree.reproduce import data as data_module
from dualfree.reproduce.download import DownloadError, download

CONTENT = b"".join(b"%d 1:%d 3:0.5\n" % (1 + i % 2, i % 7 + 1) for i in range(20_000))
CHECKSUM = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    content = CONTENT
    knows_ranges = True
    cut_after: int | None = None
    ranges: list[str | None]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        content, start = self.server.content, 0
        if "missing" in self.path:
            self.send_error(404)
            return
        if wanted and self.server.knows_ranges:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        body = content[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.cut_after is not None:
            body = body[: self.server.cut_after]
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        running.ranges = []
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def url(server: Server, name: str = "file") -> str:
    return f"http://127.0.0.1:{server.server_port}/{name}"


def test_a_download_is_complete_and_tells_its_progress(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    target = download(url(server), tmp_path / "new" / "file", CHECKSUM, lambda *now: seen.append(now))
    assert target.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [p.name for p in target.parent.iterdir()] == ["file"]


def test_a_corrupt_file_is_refused_and_thrown_away(server: Server, tmp_path: Path) -> None:
    server.content = CONTENT[:-1] + b"!"
    with pytest.raises(DownloadError, match="checksum"):
        download(url(server), tmp_path / "file", CHECKSUM)
    assert list(tmp_path.iterdir()) == []


def test_a_cut_download_goes_on_where_it_was(server: Server, tmp_path: Path) -> None:
    server.cut_after = 100_000
    with pytest.raises(DownloadError, match="100,000"):
        download(url(server), tmp_path / "file", CHECKSUM)
    assert not (tmp_path / "file").exists()
    assert (tmp_path / "file.part").stat().st_size == 100_000
    server.cut_after = None
    assert download(url(server), tmp_path / "file", CHECKSUM).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=100000-"]


def test_a_server_without_ranges_starts_again(server: Server, tmp_path: Path) -> None:
    server.knows_ranges = False
    (tmp_path / "file.part").write_bytes(CONTENT[:500])
    assert download(url(server), tmp_path / "file", CHECKSUM).read_bytes() == CONTENT


@pytest.mark.parametrize("part", [CONTENT, b"x" * len(CONTENT)], ids=["complete", "another file"])
def test_a_part_of_full_length_is_checked(server: Server, tmp_path: Path, part: bytes) -> None:
    (tmp_path / "file.part").write_bytes(part)
    if part == CONTENT:
        assert download(url(server), tmp_path / "file", CHECKSUM).read_bytes() == CONTENT
    else:
        with pytest.raises(DownloadError, match="thrown away"):
            download(url(server), tmp_path / "file", CHECKSUM)
        assert download(url(server), tmp_path / "file", CHECKSUM).read_bytes() == CONTENT


def test_what_is_not_there_is_a_sentence(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"Not Found.*--data-dir"):
        download(url(server, "missing"), tmp_path / "file", CHECKSUM)
    server.shutdown()
    server.server_close()
    with pytest.raises(DownloadError, match="cannot be downloaded"):
        download(url(server), tmp_path / "file", CHECKSUM)


def test_data_are_downloaded_once_and_found_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = data_module.KNOWN["mushrooms"]
    monkeypatch.setitem(data_module.KNOWN, "mushrooms", data_module.replace(known, checksum=CHECKSUM))
    monkeypatch.setattr(data_module, "_COLLECTION", url(server, ""))
    first = data_module.find("mushrooms", None, tmp_path)
    assert (first.origin, first.label, first.X.shape) == ("download", "mushrooms", (20_000, 3))
    assert set(np.unique(first.y)) == {-1.0, 1.0}
    again = data_module.find("mushrooms", None, tmp_path)
    assert again.origin == "file"
    assert len(server.ranges) == 1
    assert again.fingerprint() == first.fingerprint()


def test_a_corrupt_download_ends_in_data_that_are_labelled_synthetic(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_module, "_COLLECTION", url(server, ""))
    notes: list[str] = []
    found = data_module.find("mushrooms", None, tmp_path, note=notes.append)
    assert found.synthetic
    assert "synthetic" in found.label
    assert "checksum" in notes[0]
    assert "labelled as synthetic" in notes[0]
