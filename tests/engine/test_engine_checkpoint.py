"""The last two states of a run: the newest that is whole is found, and what is damaged is told."""

import os
import shutil
import signal

import pytest
import torch

from holdfast.engine import Checkpoint, Log, state


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
    from holdfast.engine import checkpoint

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


def diary(n):
    """A state with a short log of large items, a long one of small items, and something that moves."""
    large = [{"at": i, "found": torch.full((600,), i)} for i in range(n)]
    return {"n": n, "large": Log(large), "small": Log((i, i / 7) for i in range(9 * n)), "moves": torch.full((50,), n)}


def equal(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return len(a) == len(b) and all(map(equal, a, b)) if isinstance(a, list | tuple) else a == b


def pages(folder):
    return {path.name: path for path in folder.iterdir() if len(path.name) == 64}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    """So that short logs have many."""
    monkeypatch.setattr(state, "_PAGE_BYTES", 4096)
    monkeypatch.setattr(state, "_PAGE_ITEMS", 16)


@pytest.fixture
def filled(monkeypatch):
    """Bytes of every file that is written."""
    sizes = []
    fill = state.fill
    monkeypatch.setattr(state, "fill", lambda path, content: sizes.append(len(content)) or fill(path, content))
    return sizes


def test_what_is_written_of_logs_grows_with_their_length(keep, filled):
    written = []
    for n in range(1, 81):
        keep.write(diary(n))
        assert equal(keep.read(), diary(n))
        written.append(sum(filled))
    first, second, fourth = written[19], written[39] - written[19], written[79] - written[39]
    assert second < 1.1 * first and fourth < 2.2 * second
    assert fourth < 40 * 15_000  # an item of the large log has 4,800 bytes; its whole has 384,000 by then


def test_two_states_have_full_pages_in_common_and_nothing_else_is_left(keep):
    for n in range(1, 31):
        keep.write(diary(n))
    old, new = (pages(keep.folder / name) for name in ("29", "30"))
    assert len(new) == 30 + 9 * 30 // 16 and old.keys() < new.keys()
    assert all(path.samefile(new[name]) and path.stat().st_nlink == 2 for name, path in old.items())
    keep.write({"n": 0})
    keep.write({"n": 1})
    assert sorted(p.name for p in keep.folder.rglob("*") if p.is_file()) == sorted(
        2 * ["state.json", "tensors.safetensors", "SHA256SUMS"]
    )


def test_an_item_that_changed_is_found_as_it_is(keep):
    now = diary(20)
    keep.write(now)
    now["small"][3] = "changed"
    now["large"][-1]["at"] = -1.5
    keep.write(now)
    assert equal(keep.read(), now)
    del now["large"][7:]
    keep.write(now)
    assert equal(keep.read(), now)


@pytest.mark.parametrize("harm", [spoil, os.remove, lambda p: os.truncate(p, 9), lambda p: os.truncate(p, 0)])
def test_a_damaged_page_is_told(harm, keep, said):
    keep.write(diary(19))
    keep.write(diary(20))
    old, new = (pages(keep.folder / name) for name in "12")
    harm(new[min(new.keys() - old.keys())])
    assert equal(keep.read(), diary(19))
    (line,) = said
    assert line.startswith("a checkpoint cannot be used (page ") and line.endswith("; goes on from the one before")
    keep.write(diary(20))
    spoil(pages(keep.folder / "2")[min(old)])  # both have it
    assert keep.read() is None
    assert [line.rpartition("; ")[2] for line in said[1:]] == ["goes on from the one before", "starts over"]


def test_a_page_that_was_damaged_since_is_written_again(keep, said):
    keep.write(diary(20))
    for path in pages(keep.folder / "1").values():
        spoil(path)
    keep.write(diary(21))
    assert equal(keep.read(), diary(21)) and said == []


def test_where_a_file_has_one_name_pages_are_written_again(keep, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    for n in (20, 21, 22):
        keep.write(diary(n))
    assert equal(keep.read(), diary(22))
    assert all(path.stat().st_nlink == 1 for path in pages(keep.folder / "3").values())


def test_logs_are_carried_elsewhere_with_their_state(keep, tmp_path, filled):
    there = Checkpoint(tmp_path / "there", "mine")
    for n in (40, 41):
        keep.write(diary(n))
        filled.clear()
        there.put(keep.files())
        assert equal(there.read(), diary(n))
    assert sum(filled) < 15_000  # what it had already is not written again


def test_tensors_that_a_state_has_twice_are_saved_once(keep):
    shared = torch.arange(2000.0)
    keep.write({"a": shared, "b": [shared, Log([(0, shared)])], "c": Log([(0, shared)])})
    found = keep.read()
    assert all(torch.equal(shared, x) for x in (found["a"], found["b"][0], found["b"][1][0][1], found["c"][0][1]))
    assert len(pages(keep.folder / "1")) == 1


@pytest.mark.parametrize("call", range(14))
def test_kill_9_at_any_moment_of_writing_pages_leaves_a_whole_state(call, keep, said):
    """Before each file that is written or linked, each flush, the rename, and the old one's end."""
    from holdfast.engine import checkpoint

    keep.write(diary(3))
    keep.write(diary(4))
    child = os.fork()
    if child == 0:
        count = iter(range(100))

        def deadly(function):
            def counted(*args, **words):
                if next(count) == call:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **words)

            return counted

        state.fill, state.flush_folder, state.os.link = map(deadly, (state.fill, state.flush_folder, state.os.link))
        type(keep.folder).rename = deadly(type(keep.folder).rename)
        checkpoint.shutil.rmtree = deadly(checkpoint.shutil.rmtree)
        keep.write(diary(5))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL or call == 13
    found = keep.read()
    assert equal(found, diary(found["n"])) and found["n"] in (4, 5) and said == []
    keep.write(diary(6))
    assert equal(keep.read(), diary(6))
    assert len(list(keep.folder.iterdir())) == 2
