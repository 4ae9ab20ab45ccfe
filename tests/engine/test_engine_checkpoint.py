"""The last two states of a run: the newest that is whole is found, and what is damaged is told."""

import os
import shutil
import signal

import pytest
import torch

from holdfast.engine import Checkpoint


@pytest.fixture
def said():
    return []


@pytest.fixture
def keep(tmp_path, said):
    return Checkpoint(tmp_path / "checkpoint", "mine", say=said.append)


def written(keep, n):
    for i in range(1, n + 1):
        keep.write({"i": i, "t": torch.full((50,), float(i))})
    return keep


def spoil(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_nothing_is_found_where_nothing_was_written(keep, said):
    assert keep.read() is None and said == []


def test_the_last_state_is_found_and_the_one_before_it_stays(keep):
    for i in range(1, 4):
        keep.write({"i": i})
        assert keep.read() == {"i": i}
    assert sorted(p.name for p in keep.folder.iterdir()) == ["2", "3"]


@pytest.mark.parametrize("name", ["state.json", "tensors.safetensors", "SHA256SUMS"])
@pytest.mark.parametrize("harm", [spoil, os.remove, lambda p: os.truncate(p, 9), lambda p: os.truncate(p, 0)])
def test_a_damaged_state_gives_way_to_the_one_before(name, harm, keep, said):
    written(keep, 3)
    harm(keep.folder / "3" / name)
    assert keep.read()["i"] == 2
    (line,) = said
    assert line.startswith("a checkpoint cannot be used (") and line.endswith("; goes on from the one before")
    keep.write({"i": 3})
    assert keep.read() == {"i": 3} and len(said) == 1


def test_two_damaged_states_mean_a_new_start(keep, said):
    written(keep, 3)
    spoil(keep.folder / "3" / "tensors.safetensors")
    shutil.rmtree(keep.folder / "2")
    (keep.folder / "2").mkdir()
    assert keep.read() is None
    assert [line.rpartition("; ")[2] for line in said] == ["goes on from the one before", "starts over"]
    assert list(keep.folder.iterdir()) == []


def test_a_state_can_be_carried_elsewhere_as_files(keep, said, tmp_path):
    written(keep, 2)
    there = Checkpoint(tmp_path / "there", "mine")
    there.put(keep.files())
    assert there.read()["i"] == 2 and torch.equal(there.read()["t"], torch.full((50,), 2.0))
    spoil(keep.folder / "2" / "state.json")
    there.put(keep.files())
    assert there.read()["i"] == 1 and len(said) == 1
    assert Checkpoint(tmp_path / "nowhere", "mine").files() is None


def test_a_state_of_another_run_is_not_used(keep, said, tmp_path):
    written(Checkpoint(tmp_path / "checkpoint", "another's"), 1)
    assert keep.read() is None
    assert said == ["a checkpoint cannot be used (it is of another run); starts over"]


@pytest.mark.parametrize("call", range(8))
def test_kill_9_at_any_moment_of_a_write_leaves_a_whole_state(call, keep, monkeypatch):
    """Killed before the n-th of its calls to the disk: three files, two folders, the rename, and the old one's end."""
    from holdfast.engine import checkpoint, state

    written(keep, 2)
    child = os.fork()
    if child == 0:
        count = iter(range(100))

        def deadly(function):
            def counted(*args, **words):
                if next(count) == call:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **words)

            return counted

        state.fill, state.flush_folder = deadly(state.fill), deadly(state.flush_folder)
        type(keep.folder).rename = deadly(type(keep.folder).rename)
        checkpoint.shutil.rmtree = deadly(checkpoint.shutil.rmtree)
        keep.write({"i": 3})
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert keep.read()["i"] == (3 if call >= 6 else 2)
    keep.write({"i": 4})
    assert keep.read() == {"i": 4}
    assert len(list(keep.folder.iterdir())) == 2
