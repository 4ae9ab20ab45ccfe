"""Downloads against a server on this machine that cuts, ignores, redirects and lies."""

import hashlib
import importlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from holdfast.data import catalog, fetch
from holdfast.errors import BadInput

BODY = bytes(range(256)) * 1200  # 307,200 bytes
NAME = "dtd.tar.gz"


class Server(ThreadingHTTPServer):
    """Serves BODY; each request uses up one item of `plan`, then serves normally."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan = []
        self.ranges = []  # the Range header of each request
        self.obeys_range = True
        self.body = BODY
        self.states_length = True

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/file"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        server.ranges.append(wanted)
        step = server.plan.pop(0) if server.plan else "serve"
        if isinstance(step, tuple):  # (status, location)
            self.send_response(step[0])
            self.send_header("Location", step[1])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if isinstance(step, int) and step >= 400:
            self.send_error(step)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.obeys_range else 0
        body = server.body[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(server.body) - 1}/{len(server.body)}")
        if server.states_length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:100_000] if step == "cut" else body)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(importlib.import_module("holdfast.data.fetch"), "BACKOFF", 0.001)
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    published = catalog.PublishedFile(NAME, len(BODY), hashlib.sha256(BODY).hexdigest(), (server.url,))
    monkeypatch.setitem(catalog.ON_DISK, "dtd", replace(catalog.DTD, files=(published,)))
    yield server
    server.shutdown()
    server.server_close()


def names_in(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def refusal(folder, **options):
    with pytest.raises(BadInput) as caught:
        fetch("dtd", folder, **options)
    (line,) = caught.value.faults
    assert "\n" not in line
    return line


def test_a_file_is_downloaded_with_progress_and_put_in_place(server, tmp_path):
    seen = []
    (path,) = fetch("dtd", tmp_path, progress=lambda *news: seen.append(news))
    assert path == tmp_path / "dtd" / NAME and path.read_bytes() == BODY
    assert names_in(tmp_path) == [NAME]
    assert seen[-1] == (len(BODY), len(BODY), NAME) and len(seen) > 2
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)


def test_what_is_present_is_not_downloaded_again(server, tmp_path):
    fetch("dtd", tmp_path)
    fetch("dtd", tmp_path)
    assert len(server.ranges) == 1
    assert fetch("digits", tmp_path) == [] and names_in(tmp_path) == [NAME]


def test_a_cut_connection_is_resumed_with_a_range(server, tmp_path):
    server.plan = ["cut", "cut"]
    (path,) = fetch("dtd", tmp_path)
    assert path.read_bytes() == BODY
    assert server.ranges == [None, "bytes=100000-", "bytes=200000-"]


def test_a_later_call_goes_on_where_an_earlier_one_stopped(server, tmp_path):
    server.plan = ["cut"] + [503] * 5
    line = refusal(tmp_path)
    assert "503" in line and "100000 bytes are kept" in line
    assert names_in(tmp_path) == [NAME + ".part"]
    (path,) = fetch("dtd", tmp_path)
    assert path.read_bytes() == BODY and server.ranges[-1] == "bytes=100000-"
    assert names_in(tmp_path) == [NAME]


def test_a_server_that_ignores_ranges_is_asked_for_the_whole_file(server, tmp_path):
    server.plan, server.obeys_range = ["cut"], False
    (path,) = fetch("dtd", tmp_path)
    assert path.read_bytes() == BODY and server.ranges == [None, "bytes=100000-"]


def test_a_server_that_always_cuts_is_given_up(server, tmp_path):
    server.plan, server.obeys_range = ["cut"] * 50, False
    assert "100000 of 307200 bytes" in refusal(tmp_path)
    assert len(server.ranges) <= 7 and not (tmp_path / "dtd" / NAME).exists()


def test_a_refused_range_starts_anew(server, tmp_path):
    server.plan = ["cut", 416]
    (path,) = fetch("dtd", tmp_path)
    assert path.read_bytes() == BODY and server.ranges == [None, "bytes=100000-", None]


def test_a_wrong_checksum_is_refused_and_nothing_is_left(server, tmp_path):
    server.body = BODY[:-1] + b"!"
    line = refusal(tmp_path)
    assert NAME in line
    assert hashlib.sha256(BODY).hexdigest() in line and hashlib.sha256(server.body).hexdigest() in line
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("body", [BODY[:1000], BODY * 3, b"<html>moved</html>"])
def test_another_file_is_refused_and_nothing_is_left(server, tmp_path, body):
    server.body = body
    assert "is not the published file" in refusal(tmp_path)
    assert names_in(tmp_path) == []


def test_a_file_that_never_ends_is_not_stored_beyond_its_size(server, tmp_path):
    server.body, server.states_length = BODY * 30, False
    largest = []
    refusal(tmp_path, progress=lambda done, total, _: largest.append((done, total)))
    assert largest[-1][0] < len(BODY) + 2**16 + 1 and largest[-1][1] is None
    assert names_in(tmp_path) == []


def test_an_earlier_part_of_another_file_is_thrown_away(server, tmp_path):
    part = tmp_path / "dtd" / (NAME + ".part")
    part.parent.mkdir()
    part.write_bytes(b"x" * 1000)
    assert "is not the published file" in refusal(tmp_path)
    assert names_in(tmp_path) == []
    part.write_bytes(b"x" * (len(BODY) + 1))
    assert fetch("dtd", tmp_path)[0].read_bytes() == BODY


def test_a_missing_file_is_one_line_without_retries(server, tmp_path):
    server.plan = [404]
    line = refusal(tmp_path)
    assert server.url in line and "404" in line
    assert names_in(tmp_path) == [] and len(server.ranges) == 1


def test_the_next_source_is_tried(server, tmp_path, monkeypatch):
    server.plan = [404]
    entry = catalog.ON_DISK["dtd"]
    both = (server.url, server.url + "/mirror")
    monkeypatch.setitem(catalog.ON_DISK, "dtd", replace(entry, files=(replace(entry.files[0], urls=both),)))
    assert fetch("dtd", tmp_path)[0].read_bytes() == BODY


def test_no_server_is_one_line(server, tmp_path):
    line = refusal(tmp_path, sources={NAME: "http://127.0.0.1:9/file"})
    assert "no connection" in line and names_in(tmp_path) == []


def test_only_http_is_followed(server, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(BODY)
    assert "only http and https" in refusal(tmp_path / "new", sources={NAME: secret.as_uri()})
    server.plan = [(302, secret.as_uri())]
    assert "302" in refusal(tmp_path / "new")
    server.plan = [(302, "ftp://127.0.0.1:9/file")] * 5
    assert "unknown url type" in refusal(tmp_path / "new")
    assert not (tmp_path / "new" / "dtd" / NAME).exists()


def test_a_redirect_over_http_is_followed(server, tmp_path):
    server.plan = [(302, server.url + "/elsewhere")]
    assert fetch("dtd", tmp_path)[0].read_bytes() == BODY


def test_wrong_names_are_refused_before_any_request(server, tmp_path):
    with pytest.raises(BadInput, match="unknown data set 'dtt'; did you mean 'dtd'"):
        fetch("dtt", tmp_path)
    assert f"has no file 'x'; it has {NAME}" in refusal(tmp_path, sources={"x": server.url})
    assert server.ranges == []


def test_a_folder_that_cannot_be_written_is_one_line(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert "cannot write" in refusal(tmp_path / "file")
