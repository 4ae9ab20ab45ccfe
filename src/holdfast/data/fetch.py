"""Downloads from the public sources: resumed when cut, verified before use, moved into place in one step.

A download grows under `<file>.part`, so that a file under its final name is always whole and verified.
"""

from __future__ import annotations

import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.data.catalog import PublishedFile
from holdfast.data.files import data_folder, is_file, located, sha256_of
from holdfast.data.folders import is_here
from holdfast.data.load import entry_of
from holdfast.disk import flush_folder
from holdfast.errors import BadInput

Progress = Callable[[int, int | None, str], None]  # bytes done, bytes in all when known, file name

ATTEMPTS = 5  # in a row that bring nothing new
BACKOFF = 0.5  # seconds before the second attempt, doubled for each further one
TIMEOUT = 30  # seconds without a byte
_CHUNK = 2**16
_BUSY = (408, 425, 429, 500, 502, 503, 504)  # worth another attempt


class _Cut(Exception):
    """A transfer ended early; another attempt may go on from there."""


class _Stale(_Cut):
    """What an earlier attempt left is no part of that file."""


class _Gone(Exception):
    """This source cannot give the file; another one may."""


def fetch(
    name: str,
    folder: Path | None = None,
    sources: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Download the files of a data set that are not there yet; returns where all of them lie.

    `sources` may name another URL for a file (a mirror), by file name; the checksum stays the published one.
    """
    entry = entry_of(name, folder)
    if entry is None:
        return []  # embedded, or a folder of the user's: nothing to download
    home = data_folder(folder) / name
    if entry.format == "folder" and not is_here(home):
        raise BadInput(f"data set {name!r} cannot be fetched; get {entry.by_hand}, and put them into {home}")
    if entry.format == "folder":
        return [home]
    sources = sources or {}
    names = [file.name for file in entry.files]
    faults = [f"data set {name!r} has no file {f!r}; it has {', '.join(names)}" for f in sources if f not in names]
    faults += [_scheme_fault(url) for url in sources.values() if _scheme_fault(url)]
    if faults:
        raise BadInput(*faults)
    paths = located(entry, data_folder(folder))
    for path, file in zip(paths, entry.files, strict=True):
        if not is_file(path):
            urls = (sources[file.name],) if file.name in sources else file.urls
            download(file, urls, path, progress)
    return paths


def download(file: PublishedFile, urls: tuple[str, ...], target: Path, progress: Progress | None = None) -> None:
    """One file from the first source that has it, verified, to `target`."""
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _from_any(file, urls, part, progress)
        _verified(file, part)
        os.replace(part, target)
        flush_folder(target.parent)
    except OSError as error:
        raise BadInput(f"cannot write {target}: {error.strerror or error}") from error


def _from_any(file: PublishedFile, urls: tuple[str, ...], part: Path, progress: Progress | None) -> None:
    reasons = []
    for url in urls:
        if fault := _scheme_fault(url):
            raise BadInput(fault)
        try:
            return _with_retries(file, url, part, progress)
        except _Gone as error:
            reasons.append(f"{url} ({error})")
    kept = f"; {_size(part)} bytes are kept in {part}, and the same command goes on from there"
    if not _size(part):
        part.unlink(missing_ok=True)
        kept = ""
    raise BadInput(f"cannot download {file.name} from {' or '.join(reasons)}{kept}")


def _with_retries(file: PublishedFile, url: str, part: Path, progress: Progress | None) -> None:
    """Go on after each cut, until a number of attempts in a row have brought nothing new."""
    best, idle = _size(part), 0
    while True:
        try:
            return _transfer(file, url, part, progress)
        except _Cut as error:
            idle = 0 if _size(part) > best else idle + 1
            best = max(best, _size(part))
            if idle == ATTEMPTS:
                raise _Gone(f"{error}, {ATTEMPTS} times") from error
            time.sleep(BACKOFF * 2**idle)


def _transfer(file: PublishedFile, url: str, part: Path, progress: Progress | None) -> None:
    """One request: for all of the file, or for what is missing of it."""
    if _size(part) > file.size:
        part.unlink()
    done = _size(part)
    if done == file.size:
        return
    try:
        response = _opened(url, done)
    except _Stale:
        part.unlink(missing_ok=True)
        raise
    with response:
        if done and not _continues(response, done):
            done = 0  # the server sends the whole file anew
        _store(response, file, part, done, progress)


def _opened(url: str, start: int) -> http.client.HTTPResponse:
    headers = {"User-Agent": "holdfast", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        request = urllib.request.Request(url, headers=headers)
        response: http.client.HTTPResponse = _opener().open(request, timeout=TIMEOUT)
        return response
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:
            raise _Stale("the server refused to resume") from error
        kind = _Cut if error.code in _BUSY else _Gone
        raise kind(f"the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _Cut(f"no connection: {error.reason}") from error
    except (http.client.HTTPException, OSError) as error:
        raise _Cut(f"the connection broke: {error}") from error


def _continues(response: http.client.HTTPResponse, done: int) -> bool:
    return response.status == 206 and (response.headers.get("Content-Range") or "").startswith(f"bytes {done}-")


def _store(
    response: http.client.HTTPResponse, file: PublishedFile, part: Path, done: int, progress: Progress | None
) -> None:
    length = response.headers.get("Content-Length") or ""
    total = done + int(length) if length.isdecimal() else None
    with part.open("ab" if done else "wb") as out:
        while chunk := _received(response):
            out.write(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, total, file.name)
            if done > file.size:
                return  # not the published file: stop before it fills the disk; its checksum will be wrong
        out.flush()
        os.fsync(out.fileno())
    whole = file.size if total is None else total
    if done < whole:
        raise _Cut(f"the connection ended after {done} of {whole} bytes")


def _received(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(_CHUNK)
    except (http.client.HTTPException, OSError) as error:
        raise _Cut(f"the connection broke: {error}") from error


def _verified(file: PublishedFile, part: Path) -> None:
    found = sha256_of([part])
    if found != file.sha256:
        size = _size(part)
        part.unlink()
        raise BadInput(
            f"{file.name} is not the published file and was thrown away: "
            f"expected sha256 {file.sha256} ({file.size} bytes), found {found} ({size} bytes)"
        )


def _opener() -> urllib.request.OpenerDirector:
    """http and https only, also after a redirect: no ftp, file or data URLs."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _scheme_fault(url: str) -> str:
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        return f"cannot download {url}: {error}"
    return "" if scheme in ("http", "https") else f"cannot download {url}: only http and https URLs are followed"


def _size(part: Path) -> int:
    return part.stat().st_size if part.is_file() else 0
