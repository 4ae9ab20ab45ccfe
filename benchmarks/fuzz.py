"""A thousand spoiled inputs: no traceback, no hang, nothing written outside the output folder.

    python benchmarks/fuzz.py [--inputs 1000] [--seed 0] [--only CSV,Parquet,npz,images]

Command lines, sweep files, IDX, CIFAR and .mat data, a user's own CSV, Parquet, npz and image files, checkpoints and
records are spoiled at random: bytes flipped, cut, doubled, swapped for words that mean something. Each is given to the
command line in a process of its own, which may use 5 seconds of processor time (wall clock would measure the
neighbours). A user's own files are run, learned by a new model and by one that is there, predicted and scored; a
`learn` that was refused must leave its model as it was. Whoever is to blame is kept in FOLDER/found.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import os
import random
import shutil
import signal
import sys
import tarfile
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
import pandas as pd
import pyarrow as pa
from PIL import Image
from scipy.io import savemat

from holdfast.cli import main as command

SECONDS = 5
TINY = "--examples 10 --jobs 1 --quiet --out out".split()
COMMANDS = "run compare sweep report audit export watch list data reproduce".split()
WORDS = """
    gem ewc er finetune joint icarl split rotated permuted digits mnist mlp conv resnet online epochs class task domain
    --stream --data --tasks --set --seeds --lr --batch --epochs --out --json --fresh --quiet --net --scenario --protocol
    --jobs --device --scale --csv --latex --once memories=3 net.hidden=4,4 stream.angles=0,90 protocol.lr=0 0 1 2 -1 1e9
    nan inf 0.1 out ../outside /proc/nothing methods status verify smoke gem/tabel3 ä --help
""".split()
CELLS = (
    "", "nan", "inf", "-1e400", "1e39", "abc", "7", "?", "2024-01-31", "1,5", "true", 'a"b', "\0", "é" * 50, " x ",
    "x" * 200_000, None, 3, 2.5, 10**30, True, b"bytes", [1, 2], pd.Timestamp("2024-01-31"),
)  # fmt: skip
NAMES = ("", "width", "kind", "label", "y", " ", "\x1b[31m", "7", "a,b", "ä", "n\nm", "class")
TOML = b"""name = "x"
seeds = [0, 1]
stream = {name = "rotated", tasks = 2, examples = 20, test_examples = 20}
[protocol]
lr = [0.01, 0.1]
[[method]]
name = "ewc"
strength = [1, 10]
[[cell]]
where.method = {name = "ewc", strength = 10}
set.protocol.lr = 0.5
"""


def spoiled(content: bytes, dice: random.Random) -> bytes:
    """The bytes with one to four accidents."""
    for _ in range(dice.randint(1, 4)):
        n = max(len(content), 1)
        a, b = sorted((dice.randrange(n), dice.randrange(n)))
        chunk = bytes(dice.choice((0, 0xFF, 0x7F, 0x80, dice.randrange(256))) for _ in range(dice.randint(1, 8)))
        number = dice.choice((b"0", b"-1", b"1e999", b"9" * 30, b"nan", b'"', b"[", b"}", b"\n", b"\0", b"../../x"))
        how = dice.randrange(6)
        content = (
            content[:a] + chunk + content[a + len(chunk) :] if how < 2
            else content[:a] if how == 2
            else content[:a] + content[b:] if how == 3
            else content[:b] + content[a:] if how == 4
            else content[:a] + number + content[a:]
        )  # fmt: skip
    return content


def spoil_one(files: list[Path], dice: random.Random) -> None:
    file = dice.choice(files)
    content = file.read_bytes()
    if file.suffix == ".gz" and dice.random() < 0.7:  # what is inside, so that more than the decompression is met
        file.write_bytes(gzip.compress(spoiled(gzip.decompress(content), dice), 1))
    else:
        file.write_bytes(spoiled(content, dice))


class Room:
    """A folder with data, a place to work, and a place that nobody may touch."""

    def __init__(self, root: Path) -> None:
        self.root, self.data, self.here = root, root / "data", root / "here"
        for folder in (self.data, self.here, root / "outside"):
            folder.mkdir(parents=True)
        (root / "outside" / "thesis.tex").write_text("years of work")

    def seen(self) -> dict[str, tuple[int, int]]:
        """Everything but the output folder and runs/, the default one."""
        ours = (self.here / "out", self.here / "runs")
        paths = (p for p in self.root.rglob("*") if p.is_file() and not any(p.is_relative_to(o) for o in ours))
        return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in paths}


def held(folder: Path) -> dict[str, bytes]:
    """All files of a folder, byte for byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_data(data: Path) -> None:
    """Small files in the formats of MNIST, CIFAR-10 and SVHN."""
    rng = np.random.default_rng(0)
    for part, n in (("train", 60), ("t10k", 30)):
        x, y = rng.integers(0, 256, (n, 28, 28), np.uint8), np.arange(n, dtype=np.uint8) % 10
        (data / "mnist").mkdir(exist_ok=True)
        head = b"\0\0\x08\x03" + b"".join(int(k).to_bytes(4, "big") for k in x.shape)
        (data / "mnist" / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + x.tobytes(), 1))
        head = b"\0\0\x08\x01" + n.to_bytes(4, "big")
        (data / "mnist" / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(head + y.tobytes(), 1))
    (data / "cifar-10").mkdir()
    with tarfile.open(data / "cifar-10" / "cifar-10-binary.tar.gz", "w:gz") as tar:
        names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
        for name in names:
            rows = np.concatenate([(np.arange(20) % 10)[:, None], rng.integers(0, 256, (20, 3072))], 1).astype(np.uint8)
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = rows.nbytes
            tar.addfile(info, io.BytesIO(rows.tobytes()))
    (data / "svhn").mkdir()
    for part in ("train", "test"):
        x, y = rng.integers(0, 256, (32, 32, 3, 40), np.uint8), (np.arange(40) % 10 + 1).astype(np.uint8)[:, None]
        savemat(data / "svhn" / f"{part}_32x32.mat", {"X": x, "y": y}, do_compression=True)


def write_own(own: Path) -> None:
    """A table as CSV and Parquet, an npz, and class folders of images."""
    rng = np.random.default_rng(0)
    kinds = np.repeat(["iris", "rose", "tulip", "lily"], 15)
    table = pd.DataFrame({"width": rng.normal(size=60).round(2), "count": rng.integers(0, 9, 60), "kind": kinds})
    table["colour"] = rng.choice(["red", "blue", "white"], 60)
    table.loc[::7, "width"] = np.nan
    own.mkdir()
    table.to_csv(own / "flowers.csv", index=False)
    table.to_parquet(own / "flowers.parquet", index=False)
    np.savez_compressed(own / "flowers.npz", x=rng.integers(0, 256, (60, 6, 6), np.uint8), y=np.arange(60) % 4)
    for i, kind in enumerate(sorted(set(kinds))):
        (own / "photos" / kind).mkdir(parents=True)
        for k in range(8):
            image = Image.fromarray(rng.integers(40 * i, 40 * i + 60, (6, 6, 3), np.uint8))
            image.save(own / "photos" / kind / f"{k}.{('png', 'jpg', 'bmp')[k % 3]}")


def commands(room: Room, dice: random.Random) -> list[str]:
    verb = dice.choice(COMMANDS)
    tiny = TINY if verb in ("run", "compare") else []
    return [verb, *dice.choices(WORDS, k=dice.randint(0, 7)), *tiny]


def sweep_file(room: Room, dice: random.Random) -> list[str]:
    (room.here / "f.toml").write_bytes(spoiled(TOML, dice))
    return ["sweep", "f.toml", "--jobs", "1", "--quiet", "--out", "out"]


def data_file(name: str) -> Callable[[Room, random.Random], list[str]]:
    def spoil(room: Room, dice: random.Random) -> list[str]:
        spoil_one(sorted((room.data / name).iterdir()), dice)
        return ["run", "finetune", "--stream", "permuted", "--data", name, "--tasks", "2", *TINY]

    return spoil


def spoil_cells(file: Path, dice: random.Random) -> None:
    """Other cells, rows and names, in a file that is whole."""
    table = pd.read_csv(file, dtype=object) if file.suffix == ".csv" else pd.read_parquet(file).astype(object)
    for _ in range(dice.randint(1, 3)):
        row, column, how = dice.randrange(len(table)), dice.randrange(table.shape[1]), dice.randrange(5)
        name = table.columns[column]
        if how == 0:
            table.iat[row, column] = dice.choice(CELLS)
        elif how == 1:
            table[name] = pd.Series([dice.choice(CELLS)] * len(table), index=table.index, dtype=object)
        elif how == 2:
            table.columns = [dice.choice(NAMES) if c == name else c for c in table.columns]
        elif how == 3 and table.shape[1] > 1:
            table = table.drop(columns=[name])
        elif how == 4:
            table = pd.concat([table.iloc[: max(1, row)]] * dice.randint(1, 3))
    if file.suffix == ".csv":
        table.to_csv(file, index=dice.random() < 0.2, sep=dice.choice(",,,;\t"))
        return
    with contextlib.suppress(
        ValueError, TypeError, OverflowError, pa.ArrowException
    ):  # a table that is none stays as it was
        table.to_parquet(file)


def spoil_arrays(file: Path, dice: random.Random) -> None:
    """Other arrays, in an archive that is whole."""
    with np.load(file) as held:
        arrays = dict(held)
    x, y = arrays["x"], arrays["y"]
    others: tuple[Callable[[], dict[str, object]], ...] = (
        lambda: {"x": np.where(x > 250, np.nan, x)},
        lambda: {"x": x.astype(dice.choice(("f2", ">f8", "i8", "?", "c16", "U3")))},
        lambda: {"x": x.reshape(dice.choice(((60, 36), (60, 6, 6, 1), (60, 1, 1, 6, 6), (2160,), (36, 10, 6))))},
        lambda: {"x": x[: dice.randrange(60)]},
        lambda: {"x": np.full((60, 2), dice.choice((1e39, -np.inf, 10**18)))},
        lambda: {"y": y.astype(dice.choice(("f8", "U9", "S2", "?", "u1", "c8")))},
        lambda: {"y": np.where(y == 1, np.nan, y)},
        lambda: {"y": np.array([dice.choice(CELLS) for _ in y], object)},
        lambda: {"y": y * dice.choice((0, -1, 10**17))},
        lambda: {"y": y[:, None]},
        lambda: {dice.choice(("x_test", "y_test", "z", "../y")): x},
        lambda: {"x_test": x[:9], "y_test": y[:9] + dice.choice((0, 1))},
    )
    for _ in range(dice.randint(1, 2)):
        arrays |= dice.choice(others)()
    if dice.random() < 0.1:
        del arrays[dice.choice(sorted(arrays))]
    np.savez(file, **arrays)  # type: ignore[arg-type]


def spoil_own(own: Path, dice: random.Random) -> list[str]:
    """A user's file or folder, where it lies; and what may be said of it."""
    table = own.suffix in (".csv", ".parquet")
    if table and dice.random() < 0.6:
        spoil_cells(own, dice)
    elif own.suffix == ".npz" and dice.random() < 0.6:
        spoil_arrays(own, dice)
    else:
        spoil_one(sorted(p for p in own.rglob("*") if p.is_file()) if own.is_dir() else [own], dice)
    label = ["--label", "kind"] if table and dice.random() < 0.7 else []
    columns = ["--columns", dice.choice(("width=category", "width=number", "count=skip"))]
    return label + columns * (table and dice.random() < 0.2)


def own_file(name: str) -> Callable[[Room, random.Random], list[str]]:
    """Spoiled, and run, learned by a new model or by one that is there, predicted or scored."""

    def spoil(room: Room, dice: random.Random) -> list[str]:
        own = room.data / "own" / name
        said, how = spoil_own(own, dice), dice.choice(("run", "begin", "learn", "predict", "score"))
        if how == "run":
            return ["run", "finetune", "--data", str(own), "--tasks", "2", *said, *TINY]
        if how == "begin":
            return ["learn", str(own), *said, *LITTLE]
        shutil.copytree(room.root / "models" / name, room.here / "out")
        label = said[:2] if said[:1] == ["--label"] and how != "predict" else []
        return [how, str(own), *label, "--model", "out", "--quiet"]

    return spoil


def checkpoint(room: Room, dice: random.Random) -> list[str]:
    """A run that was killed after its first task, and whose state was spoiled then."""
    shutil.copytree(room.root / "killed", room.here / "out")
    spoil_one(sorted(p for p in (room.here / "out").rglob("*") if p.is_file() and "checkpoint" in p.parts), dice)
    return KILLED


def record(room: Room, dice: random.Random) -> list[str]:
    shutil.copytree(room.root / "finished", room.here / "out")
    spoil_one(sorted(p for p in (room.here / "out").rglob("*") if p.suffix in (".json", ".npz")), dice)
    return dice.choice((["report", "out"], ["audit", "out"], ["export", "out", "--csv"], ["watch", "out", "--once"]))


LITTLE = "--epochs 1 --set net.hidden=8 --model out --quiet".split()
OWN = {"CSV": "flowers.csv", "Parquet": "flowers.parquet", "npz": "flowers.npz", "images": "photos"}
KILLED = ["run", "ewc", "--stream", "split", "--tasks", "3", *TINY]
KINDS = {
    "command line": commands,
    "sweep file": sweep_file,
    "IDX": data_file("mnist"),
    "CIFAR": data_file("cifar-10"),
    ".mat": data_file("svhn"),
    **{kind: own_file(name) for kind, name in OWN.items()},
    "checkpoint": checkpoint,
    "record": record,
}


def child(room: Room, args: list[str], errors: Path) -> int:
    """The exit code of the command line in a process of its own; negative: the signal that ended it."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 99
    try:
        os.chdir(room.here)
        os.environ["HOLDFAST_DATA"] = str(room.data)
        with errors.open("wb") as file:
            os.dup2(file.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        code = command(args)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def prepare(room: Room) -> None:
    """A finished folder, and one whose process died in its second task."""
    write_data(room.data)
    write_own(room.data / "own")
    os.chdir(room.here)
    assert command(KILLED) == 0  # here, so that everything is loaded when processes are forked
    os.chdir(room.root)
    shutil.move(room.here / "out", room.root / "finished")
    for name in OWN.values():
        os.chdir(room.here)
        said = ["--label", "kind"] if name.endswith((".csv", ".parquet")) else []
        assert command(["learn", str(room.data / "own" / name), *said, *LITTLE]) == 0
        os.chdir(room.root)
        (room.root / "models").mkdir(exist_ok=True)
        shutil.move(room.here / "out", room.root / "models" / name)
    pid = os.fork()
    if not pid:
        from holdfast.methods.ewc import EWC

        observe, steps = EWC.observe, 0

        def dying(self, batch):
            nonlocal steps
            steps += 1
            if batch.task == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return observe(self, batch)

        EWC.observe = dying  # type: ignore[method-assign]
        os.chdir(room.here)
        command(KILLED)
    os.waitpid(pid, 0)
    assert list((room.here / "out").rglob("checkpoint/*/state.json")), "no checkpoint was left behind"
    shutil.move(room.here / "out", room.root / "killed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(KINDS), help="kinds of inputs, separated by commas")
    asked = parser.parse_args()
    kinds = asked.only.split(",")
    if wrong := [kind for kind in kinds if kind not in KINDS]:
        parser.error(f"unknown kind {wrong[0]!r}; choose from {', '.join(KINDS)}")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-fuzz-"))
    room = Room(folder / "room")
    prepare(room)
    shutil.copytree(room.data, folder / "data")
    codes: dict[str, Counter[int]] = {kind: Counter() for kind in kinds}
    blamed = 0
    for i in range(asked.inputs):
        kind = kinds[i % len(kinds)]
        dice = random.Random(f"{asked.seed} {i}")
        for place in (room.here, room.data):
            shutil.rmtree(place)
        room.here.mkdir()
        shutil.copytree(folder / "data", room.data)
        args = KINDS[kind](room, dice)
        before, errors, model = room.seen(), folder / "errors", held(room.here / "out")
        code = child(room, args, errors)
        codes[kind][code] += 1
        said = errors.read_text(errors="replace")
        wrong = [
            *(["a traceback"] if "Traceback" in said else []),
            *(
                [f"more than {SECONDS} s"]
                if code == -signal.SIGPROF
                else [f"exit {code}"]
                if code not in (0, 1, 2)
                else []
            ),
            *(["wrote outside"] if room.seen() != before else []),
            *(["changed the model"] if args[0] == "learn" and code and held(room.here / "out") != model else []),
        ]
        if wrong:
            blamed += 1
            print(f"{i} {kind}: {', '.join(wrong)}: holdfast {' '.join(args)}\n{said[-600:]}", flush=True)
            shutil.copytree(room.root, folder / "found" / str(i))
    for kind, found in codes.items():
        words = ", ".join(f"exit {code}: {n}" for code, n in sorted(found.items()))
        print(f"{kind:13s} {sum(found.values()):4d} inputs   {words}")
    print(f"{asked.inputs} inputs, {blamed} to blame" + (f"; see {folder / 'found'}" if blamed else ""))
    if not blamed:
        shutil.rmtree(folder)
    sys.exit(1 if blamed else 0)


if __name__ == "__main__":
    main()
