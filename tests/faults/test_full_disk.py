"""A disk that is full: exit 1, one line, every earlier record readable, nothing half-written."""

import errno
import resource
import shlex
import signal
import subprocess

import pytest

import holdfast as hf
from holdfast.cli import main
from holdfast.sweeps import read_record

COMPARE = "compare finetune --tasks 2 --examples 60 --seeds 0,1,2,3,4,5,6,7,8,9,10,11,12,13 --set net.hidden=20 --quiet"


def whole(out):
    """Every record can be read, and there is nothing that looks half-written."""
    assert [p for p in out.rglob("*") if p.name.startswith(".") or p.name.endswith(".part")] == []
    return [read_record(p.parent).method for p in out.glob("cells/*/record.json")]


def stopped(child, reason):
    assert child.wait() == 1
    (line,) = child.said.read_text().splitlines()
    assert line.startswith("holdfast: ") and f"cannot be written ({reason}); what is finished is kept in" in line


@pytest.fixture
def tiny(tmp_path):
    """A file system of 160 kB, and how to enlarge it."""
    place = tmp_path / "tiny"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    enlarge = ["mount", "-o", "remount,size=50m", str(place)]
    yield place, lambda: subprocess.run(enlarge, check=True)
    subprocess.run(["umount", str(place)], check=True)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """What COMPARE leaves where there is room."""
    out = tmp_path_factory.mktemp("elsewhere") / "out"
    assert main(shlex.split(f"{COMPARE} --jobs 2 --out {out}")) == 0
    return out


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_loses_no_record_and_the_same_command_goes_on(jobs, tiny, holdfast, contents, elsewhere):
    place, enlarge = tiny
    stopped(holdfast(f"{COMPARE} --jobs {jobs} --out {place}/out"), "No space left on device")
    kept = whole(place / "out")
    assert 1 <= len(kept) < 14
    enlarge()
    assert holdfast(f"{COMPARE} --jobs {jobs} --out {place}/out").wait() == 0
    assert contents(place / "out") == contents(elsewhere)


def test_a_disk_that_is_full_from_the_start(tiny, holdfast):
    place, _ = tiny
    (place / "filler").write_bytes(bytes(156 * 1024))
    child = holdfast(f"{COMPARE} --jobs 1 --out {place}/out")
    stopped(child, "No space left on device")
    assert not (place / "out" / "cells").exists()


@pytest.mark.parametrize(("limit", "what"), [(12_000, "checkpoint/1"), (80_000, "report.html")])
def test_a_limit_on_file_sizes_is_told_like_a_full_disk(limit, what, child, tmp_path):
    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return main(shlex.split(f"{COMPARE} --jobs 2 --out {tmp_path}/out"))

    process = child(limited)
    stopped(process, "File too large")
    assert what in process.said.read_text()
    assert len(whole(tmp_path / "out")) == (0 if "checkpoint" in what else 14)


@pytest.mark.parametrize(
    "name", ["predictions.npz", "images.npz", "record.json", "summary.json", "report.html", "experiment.json"]
)
def test_whatever_cannot_be_written_is_named(name, tmp_path, monkeypatch, capsys):
    from holdfast import disk

    fill = disk.fill

    def full(path, content):
        if path.name.startswith(f".{name}."):
            fill(path, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        fill(path, content)

    monkeypatch.setattr(disk, "fill", full)
    assert main(shlex.split(f"run er --tasks 2 --examples 20 --jobs 1 --quiet --out {tmp_path}/out")) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and "No space left on device" in said.err
    assert len(whole(tmp_path / "out") if (tmp_path / "out").exists() else []) == (
        name in ("summary.json", "report.html")
    )


def test_a_users_own_full_disk_is_a_failure_of_its_cell_only(tmp_path):
    class Writes(hf.Learner):
        def observe(self, batch):
            raise OSError(errno.ENOSPC, "No space left on device", "/mine")

    stream = hf.stream("split", tasks=2, examples=20)
    found = hf.compare([Writes, "finetune"], stream, seeds=1, jobs=2, out=tmp_path / "out")
    assert len(found.records) == 1 and len(found.failures) == 1
