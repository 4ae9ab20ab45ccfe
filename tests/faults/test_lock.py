"""Two processes on one folder: the second is told so in one line."""

import os
import signal
import threading

import pytest

import holdfast as hf
from holdfast.sweeps import locked

RUN = "run finetune --tasks 2 --examples 20 --jobs 1"


@pytest.fixture
def holder(child, tmp_path):
    """A process that has the folder `out`."""

    def hold():
        with locked(tmp_path / "out"):
            (tmp_path / "ready").touch()
            signal.pause()

    process = child(hold)
    while not (tmp_path / "ready").exists():
        pass
    yield process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def test_the_second_process_gets_one_line(holder, holdfast, tmp_path):
    second = holdfast(f"{RUN} --out {tmp_path / 'out'}")
    assert second.wait() == 2
    line = f"holdfast: {tmp_path}/out is in use by process {holder.pid}; wait for it, or choose another --out\n"
    assert second.said.read_text() == line
    assert [p.name for p in (tmp_path / "out").iterdir()] == [".lock"]


def test_fresh_does_not_clear_a_folder_in_use(holdfast, tmp_path, request):
    assert holdfast(f"{RUN} --out {tmp_path / 'out'}").wait() == 0
    request.getfixturevalue("holder")
    assert holdfast(f"{RUN} --lr 0.3 --fresh --out {tmp_path / 'out'}").wait() == 2
    assert list((tmp_path / "out").glob("cells/*/record.json"))


def test_reading_needs_no_lock(holdfast, tmp_path, request):
    assert holdfast(f"{RUN} --out {tmp_path / 'out'}").wait() == 0
    request.getfixturevalue("holder")
    assert len(hf.load(tmp_path / "out")) == 1
    for command in ("report", "audit", "watch --once"):
        assert holdfast(f"{command} {tmp_path / 'out'}").wait() == 0


def test_a_lock_dies_with_its_holder(child, holdfast, tmp_path):
    def hold():
        with locked(tmp_path / "out"):
            os.kill(os.getpid(), signal.SIGKILL)

    assert child(hold).wait() == -9
    assert (tmp_path / "out" / ".lock").exists()
    assert holdfast(f"{RUN} --out {tmp_path / 'out'}").wait() == 0
    assert not (tmp_path / "out" / ".lock").exists()


def test_a_lock_may_be_asked_for_again_by_its_holder_but_by_no_other_thread(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.sweeps.lock.GRACE", 0.0)
    refused = []

    def other():
        try:
            with locked(tmp_path):
                pass
        except hf.BadInput as error:
            refused.append(str(error))

    with locked(tmp_path):
        with locked(tmp_path / "." / ""):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 1 and f"process {os.getpid()}" in refused[0]
    with locked(tmp_path):
        pass


def test_many_processes_have_the_folder_one_after_the_other(child, tmp_path, monkeypatch):
    """Each adds one to a number, slowly enough to lose some if two were at it together."""
    monkeypatch.setattr("holdfast.sweeps.lock.GRACE", 600.0)
    number = tmp_path / "number"
    number.write_text("0")

    def add():
        for _ in range(10):
            with locked(tmp_path / "out"):
                before = int(number.read_text())
                os.sched_yield()
                number.write_text(str(before + 1))
        return 0

    adding = [child(add) for _ in range(4)]
    assert [process.wait() for process in adding] == [0] * 4
    assert number.read_text() == "40"


def test_a_folder_that_is_not_ours_gets_no_lock(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / ".lock").write_text("the editor's")
    with pytest.raises(hf.BadInput, match="is not an output folder of Holdfast"), locked(tmp_path):
        pass
    assert (tmp_path / ".lock").read_text() == "the editor's"
