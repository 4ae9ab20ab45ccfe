"""The public verbs: stream, method, net, protocol, run, model, compare, sweep, tune, diagnose, load."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from torch import nn

from holdfast import metrics, process, report
from holdfast.errors import BadInput, RunFailed
from holdfast.methods import Learner, methods
from holdfast.nets import NetSpec, Warm, nets
from holdfast.protocols import Protocol, Watch, name_of, protocols
from holdfast.report import Reproduction, figures
from holdfast.settings import Shelf, Threads, changed, expected, fits
from holdfast.streams import StreamSpec, last_alone, streams
from holdfast.sweeps import (
    Cell,
    Choice,
    Failure,
    Grid,
    Model,
    NetLike,
    Sweep,
    Watcher,
    check_all,
    choose,
    claim,
    claim_sweep,
    execute,
    gridded,
    locked,
    model_folder,
    no_tasks,
    on_ray,
    own,
    read_cells,
    read_experiment,
    read_failures,
    read_sweep,
    sweep_of,
    together,
    tracked,
    trial_cells,
    versions,
    write_text,
)
from holdfast.sweeps.board import Board, posted
from holdfast.sweeps.on_node import recipe
from holdfast.sweeps.store import dumps, take_over
from holdfast.types import Record, Scenario, Stream

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")
StreamLike = str | Stream | StreamSpec | type[StreamSpec]
ProtocolLike = str | Protocol | type[Protocol]


def method(name: str | type[Learner], **settings: Any) -> Learner:
    """A method by name, e.g. `method("gem", memories=256, margin=0.5)`, or from a class of your own."""
    return _made(methods, name, settings)


def net(name: str, **settings: Any) -> NetSpec:
    """A network by name, e.g. `net("mlp", hidden=(400, 400))`."""
    return nets.make(name, settings)


def protocol(name: str | type[Protocol], **settings: Any) -> Protocol:
    """A protocol by name, e.g. `protocol("epochs", epochs=4, batch=128, lr=1e-3)`, or from a class of your own."""
    return _made(protocols, name, settings)


def stream(name: str | type[StreamSpec], data: Any = None, seed: int = 0, **settings: Any) -> Stream:
    """A stream by name, or from a class of your own.

    `data` is a data set's name, the path of a table (.csv, .parquet), an .npz or a folder of images, `(x, y)`,
    `(x, y, x_test, y_test)`, a pandas DataFrame, a torch or Hugging Face data set, or an `hf.Source`, which says more
    of any of these; for streams that are cut from several, names separated by commas or a list of names and data sets.
    Where none is given it is 'digits', but for streams that have data sets of their own.

    >>> stream("split", tasks=5).tasks[1].classes
    (2, 3)
    """
    spec = _made(streams, name, settings)
    return spec.cut(name_of(spec), data, seed)


def _made(shelf: Shelf[T], given: str | type[T], settings: Mapping[str, Any]) -> T:
    if not isinstance(given, str | type):
        base = shelf.base.__name__
        raise BadInput(f"a {shelf.word} must be a name or a {base} class, not {_article(given)}")
    if isinstance(given, type):
        name, cls = given.__name__, own.whole(shelf, given, given.__name__)
    else:
        name, cls = own.find(shelf, given)
    return own.made(cls, settings, f"{shelf.word} {name!r}")


def run(
    method: str | Learner | type[Learner],
    stream: StreamLike,
    net: str | NetLike = "mlp",
    protocol: ProtocolLike = "online",
    seed: int = 0,
    device: str = "auto",
    watch: Watch | None = None,
    threads: int = 1,
    keep_model: str | Path | None = None,
) -> Record:
    """Run one method on one stream. The stream is taken as it is; the seed sets weights, batches and the learner.

    One thread is the fastest for small networks; a large one gains from more `threads`. `keep_model`: the folder where
    the learner stays when it is over, for `load_model`.
    """
    _refuse_threads(threads)
    what = as_method(method), as_stream(stream), as_net(net), as_protocol(protocol)
    cell = Cell(*what, seed, device, reseed=False, threads=threads)
    cell.refuse()
    if keep_model is None:
        return cell.run(watch)
    folder = Path(keep_model)
    model_folder.refuse_another(folder, cell)
    return cell.run(watch, leave=lambda session, record: model_folder.save(Model.of(cell, session, record), folder))


def model(
    method: str | Learner | type[Learner] = "er",
    net: str | NetLike = "mlp",
    protocol: ProtocolLike = "epochs",
    scenario: Scenario = "class",
    classes: int | Sequence[str] | None = None,
    known: Sequence[str] = (),
    scale: str = "unit",
    augment: bool = False,
    seed: int = 0,
    device: str = "auto",
    threads: int = 1,
) -> Model:
    """A model that has learned nothing yet; `model.learn(x, y)` teaches it a task, and then another.

    `classes`: how many will come at most (100), or the names of all: so many outputs it has from the start, each for
    the next class that is new. `known` names those of the first outputs, which a `warm` network knows from the start.
    `scale` and `augment` are a stream's.

    >>> from sklearn.datasets import load_digits
    >>> x, y = load_digits(return_X_y=True)
    >>> known = model("er", classes=10)
    >>> for old in (0, 5):
    ...     now = (y >= old) & (y < old + 5)
    ...     record = known.learn(x[now] / 16, y[now])
    >>> known.score(x / 16, y).accuracy > 0.8
    True
    """
    _refuse_threads(threads)
    stream = no_tasks(scenario, classes, known, scale, augment, seed)
    what = as_method(method), stream, as_net(net), as_protocol(protocol)
    return Model(Cell(*what, seed, device, reseed=False, threads=threads), known=len(known))


def warm(module: nn.Module) -> Warm:
    """A network that begins as a copy of a trained module, with outputs added for the classes that will come.

    `model("lwf", net=warm(trained), known=["cat", "dog"])` knows what the module knows. No method protects it, though:
    to all of them the first task that they learn is the first.
    """
    return Warm(module)


def save(model: Model, folder: str | Path) -> None:
    """Keep a model in a folder, as JSON and safetensors; one that is there is replaced, whole or not at all."""
    if not isinstance(model, Model):
        raise BadInput(f"only a model can be saved, of hf.model or hf.load_model, not {_article(model)}")
    model_folder.save(model, Path(folder))


def load_model(
    folder: str | Path,
    method: Learner | None = None,
    net: NetLike | None = None,
    protocol: Protocol | None = None,
    device: str | None = None,
) -> Model:
    """The model in a folder. What of it is code of your own must be given; no code is ever read from a disk."""
    return model_folder.load(Path(folder), model_folder.Own(method, net, protocol), device)


def compare(
    methods: str | Learner | type[Learner] | Sequence[str | Learner | type[Learner]],
    stream: StreamLike | Sequence[StreamLike],
    seeds: int | Sequence[int] = 5,
    net: str | NetLike = "mlp",
    protocol: ProtocolLike = "online",
    device: str = "auto",
    jobs: int | None = None,
    out: str | Path | None = None,
    watch: Watcher | None = None,
    checkpoint_every: int | None = None,
    stream_seed: int | None = None,
    threads: int = 1,
    scenario: str | Sequence[str] | None = None,
    alone: bool = False,
    track: str | Sequence[str] = (),
) -> Comparison:
    """Run several methods on the same streams and seeds, in parallel processes; each seed cuts the stream anew.

    Each has one thread; for large networks `threads` gives them more, and there are fewer processes then.
    With `scenario`, e.g. `["class", "task"]`, every stream is cut anew in each of them, whatever its own.
    With `alone`, each also learns the last task with nothing before it, which gives T(S) (paper 000, eq. 3).
    With `stream_seed`, every run has the stream of that seed, and `seeds` set weights, batches and the learner alone.
    With `out`, results are kept there: finished runs are not repeated, interrupted ones go on from the last task (and
    every `checkpoint_every` steps of it), and another experiment's folder is refused. `track`, e.g. "tensorboard:logs",
    tells another program what is measured while it is measured: tensorboard, wandb (offline) or mlflow.
    """
    _refuse_threads(threads)
    chosen = [as_method(m) for m in ([methods] if isinstance(methods, str | Learner | type) else methods)]
    which = [stream] if isinstance(stream, str | Stream | StreamSpec | type) else list(stream)
    numbers = range(seeds) if isinstance(seeds, int) else list(seeds)
    if not all(isinstance(seed, int) for seed in numbers):
        raise BadInput(f"seeds must be a number of seeds or a list of whole numbers, not {seeds!r}")
    if stream_seed is not None and (type(stream_seed) is not int or stream_seed < 0):
        raise BadInput(f"stream_seed must be a whole number >= 0, not {stream_seed!r}")
    shown = [cut for one in which for cut in _in_scenarios(as_stream(one), scenario)]
    shown = shown if stream_seed is None else [cut.fixed(stream_seed) for cut in shown]
    shown = [each for cut in shown for each in ([cut, last_alone(cut)] if alone else [cut])]
    built, way = as_net(net), as_protocol(protocol)
    cells = [Cell(m, s, built, way, seed, device, threads=threads) for s in shown for m in chosen for seed in numbers]
    if not cells:
        raise BadInput("there is nothing to run: give at least one method, one stream and one seed")
    with tracked(cells, _words(track), watch) as told:
        return run_cells(cells, None if out is None else Path(out), jobs, told, checkpoint_every)


def sweep(
    methods: Any,
    streams: Any = None,
    seeds: int | Sequence[int] | None = None,
    nets: Any = None,
    protocols: Any = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    name: str | None = None,
    device: str | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    watch: Watcher | None = None,
    on: str | None = None,
    checkpoint_every: int | None = None,
    threads: int | None = None,
    track: str | Sequence[str] = (),
) -> Comparison:
    """Run methods × streams × nets × protocols × seeds × a grid of settings, or a sweep file: `sweep("file.toml")`.

    Each of the first is one thing or a list: names, or what hf.method(...) and its like make. `grid` maps settings to
    values: `{"ewc.strength": [1, 10], "protocol.lr": [0.01, 0.1], "net.hidden": [(100,), (400, 400)]}`; "stream.seed"
    cuts the stream with that seed in place of each run's. `out` is a store: sweeps kept in the same one share their
    finished cells. `on="ray"` runs the cells on a Ray cluster of this machine, `on="ray://HOST:PORT"` on another one.
    Unfinished cells are saved in `out` either way, after every task and every `checkpoint_every` steps of it, and go on
    from there, wherever they are run next. `track` as for `compare`.
    """
    said = {"streams": streams, "seeds": seeds, "nets": nets, "protocols": protocols, "grid": grid, "name": name}
    if isinstance(methods, str | Path) and str(methods).endswith(".toml"):
        said |= {"device": device, "threads": threads}
        twice = [word for word, value in said.items() if value is not None]
        if twice:
            others = "jobs, on, out, watch, checkpoint_every and track"
            raise BadInput(f"{methods} says its own {', '.join(twice)}; give only {others} beside it")
        wanted = read_sweep(methods)
    else:
        given = {"method": methods, "stream": streams, "net": nets, "protocol": protocols}
        listed = {role: _listed(things) for role, things in given.items() if things is not None}
        entries = gridded({"stream": ["split"], "net": ["mlp"], "protocol": ["online"], **listed}, grid or {})
        numbers = 1 if seeds is None else seeds if isinstance(seeds, int) else list(seeds)
        ways = {"device": device or "auto", "threads": 1 if threads is None else threads}
        wanted = sweep_of({**entries, "seeds": numbers, **ways}, name or "sweep")
    with tracked(wanted.cells, _words(track), watch) as told:
        return run_sweep(wanted, None if out is None else Path(out), jobs, told, on, checkpoint_every)


def run_sweep(
    wanted: Sweep,
    out: Path | None = None,
    jobs: int | None = None,
    watch: Watcher | None = None,
    on: str | None = None,
    checkpoint_every: int | None = None,
) -> Comparison:
    """Run the cells of a sweep that are not finished in the store `out`, and keep everything there.

    The sweep's own summary and report are in OUT/sweeps/NAME; those of all its sweeps are in OUT.
    """
    if wrong := on_ray.faults(on) + _every_faults(checkpoint_every):
        raise BadInput(*wrong)
    if out is None:
        results = _executed(wanted.cells, None, jobs, watch, checkpoint_every, on)
        return Comparison.of(wanted.cells, results, experiment_of(wanted.cells))
    with locked(out):
        return run_in_store(wanted, out, jobs, Board(wanted.cells, watch), on, checkpoint_every)


def run_in_store(
    wanted: Sweep, out: Path, jobs: int | None, board: Board, on: str | None, checkpoint_every: int | None
) -> Comparison:
    """What `run_sweep` does in a store that is locked, with a sweep that has no faults."""
    experiment = experiment_of(wanted.cells)
    claim_sweep(out, wanted.name, experiment)
    with posted(board, out):
        results = _executed(wanted.cells, out, jobs, board, checkpoint_every, on)
    comparison = Comparison.of(wanted.cells, results, experiment)
    if comparison.records:
        home = out / "sweeps" / wanted.name
        comparison.keep(home)
        if sorted(path.name for path in home.parent.iterdir()) == [wanted.name]:
            for name in ("summary.json", "report.html"):
                write_text(out / name, (home / name).read_text())
        else:
            Comparison.read(out).keep(out)
    return comparison


def tune(
    method: str | Learner | type[Learner],
    stream: StreamLike,
    grid: Grid,
    net: str | NetLike = "mlp",
    protocol: ProtocolLike = "online",
    seed: int = 0,
    device: str = "auto",
    jobs: int | None = None,
    out: str | Path | None = None,
    watch: Watcher | None = None,
) -> Tuned:
    """Choose settings from a grid: the highest ACC on the tasks' validation parts after the whole stream.

    A run that diverges counts as the worst. The choice is noted as `val:stream`: it uses later tasks' data, which the
    audit card says, and the trials count in the cost of the result.

    >>> tuned = tune("ewc", stream("rotated", tasks=2, examples=50, val=0.1), {"strength": [1.0, 1e9]}, jobs=1)
    >>> tuned.choice.settings, tuned.run().settings["strength"]["chosen_by"]
    ({'strength': 1.0}, 'val:stream')
    """
    cell = Cell(as_method(method), as_stream(stream), as_net(net), as_protocol(protocol), seed, device, reseed=False)
    cells = trial_cells(cell, grid)
    found = run_cells(cells, None if out is None else Path(out), jobs, watch)
    return Tuned(choose(grid, found.outcomes(cells)), cell)


def diagnose(
    stream: StreamLike,
    net: str | NetLike = "bayes",
    method: str | Learner | type[Learner] | None = None,
    repeats: int = 20,
    protocol: ProtocolLike = "early",
    device: str = "auto",
    jobs: int | None = None,
    out: str | Path | None = None,
    watch: Watcher | None = None,
) -> metrics.Diagnosis:
    """Does this stream pose the problem at all? (Paper 001 §6.1.) Prints as sentences that end in a number.

    A learner, VCL unless another `method` is given, learns the first task, and is looked at before each of the first
    batches of the second: how sure it is, how hard the batch pulls at its output layer, and how hard the prior pulls
    back; the same with permuted pixels, which resemble nothing. Each repeat is a seed: of stream, weights and batches.

    >>> found = diagnose("split", repeats=2, protocol=protocol("early", steps=50), jobs=1)
    >>> found.most.__round__(2), len(found.course("ratio"))
    (2.3, 15)
    """
    if type(repeats) is not int or repeats < 1:
        raise BadInput(f"repeats must be a whole number >= 1, not {repeats!r}")
    what = as_method(method or diagnosing()), as_stream(stream).first(2), as_net(net), as_protocol(protocol)
    found = run_cells(
        [Cell(*what, seed, device) for seed in range(repeats)], None if out is None else Path(out), jobs, watch
    )
    if found.failures:
        raise RunFailed(f"{found.failures[0].cell} failed: {found.failures[0].reason}")
    return metrics.Diagnosis.of(found.records)


def diagnosing() -> Learner:
    """The learner that looks at a stream; ten draws of its weights tell how sure it is."""
    return method("vcl", test_samples=10)


def run_cells(
    cells: Sequence[Cell],
    out: Path | None = None,
    jobs: int | None = None,
    watch: Watcher | None = None,
    checkpoint_every: int | None = None,
    sources: Sequence[Path] = (),
) -> Comparison:
    """Check all cells, run those that are not finished in `out`, and keep everything there.

    What is finished in the output folders `sources` is taken over.
    """
    if wrong := _every_faults(checkpoint_every):
        raise BadInput(*wrong)
    check_all(cells)
    if out is None:
        return Comparison.of(cells, execute(cells, None, jobs, watch, checkpoint_every), experiment_of(cells))
    with locked(out):
        experiment = claimed(out, cells, sources)
        board = Board(cells, watch)
        with posted(board, out):
            results = execute(cells, out, jobs, board, checkpoint_every)
        comparison = Comparison.of(cells, results, experiment)
        comparison.keep(out)
        return comparison


def claimed(out: Path, cells: Sequence[Cell], sources: Sequence[Path] = ()) -> Mapping[str, Any]:
    """Make `out` the folder of these cells, with what is finished of them in `sources`; gives its experiment.json."""
    experiment = experiment_of(cells)
    claim(out, experiment, lambda: {digest: what for cell in cells for digest, what in cell.code().items()})
    for source in sources:
        take_over((cell.name for cell in cells), source, out)
    return experiment


def _executed(
    cells: Sequence[Cell],
    out: Path | None,
    jobs: int | None,
    watch: Watcher | None,
    checkpoint_every: int | None,
    on: str | None,
) -> list[Record | Failure]:
    """Here, or on a Ray cluster."""
    if on is None:
        return execute(cells, out, jobs, watch, checkpoint_every)
    return on_ray.execute_on_ray(cells, out, on, jobs, watch, checkpoint_every)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Records of several methods and seeds; prints as a table."""

    records: tuple[Record, ...]
    failures: tuple[Failure, ...] = ()
    names: tuple[str, ...] = ()  # of the records' cells, in their order
    experiment: Mapping[str, Any] = field(default_factory=dict, repr=False)  # what was asked for: experiment.json
    called: Mapping[str, str] = field(default_factory=dict, repr=False)  # cells' own names, of a paper's table
    advice: Mapping[str, Any] | None = field(default=None, repr=False)  # what they led to: advice.json

    @classmethod
    def of(
        cls, cells: Sequence[Cell], results: Sequence[Record | Failure], experiment: Mapping[str, Any]
    ) -> Comparison:
        """What became of these cells, and of which experiment they are."""
        records = tuple(r for r in results if isinstance(r, Record))
        finished = tuple(c.name for c, r in zip(cells, results, strict=True) if isinstance(r, Record))
        return cls(records, tuple(r for r in results if isinstance(r, Failure)), finished, experiment)

    def in_order(self, cells: Sequence[Cell]) -> list[Record | None]:
        """The records of these cells; None for one that failed."""
        records = dict(zip(self.names, self.records, strict=True))
        return [records.get(cell.name) for cell in cells]

    def outcomes(self, cells: Sequence[Cell]) -> list[Record | Failure]:
        """What became of these cells."""
        failures = {failure.cell: failure for failure in self.failures}
        found = zip(cells, self.in_order(cells), strict=True)
        return [failures[cell.name] if record is None else record for cell, record in found]

    @classmethod
    def read(cls, folder: str | Path) -> Comparison:
        """The finished records of an output folder, of a store, or of one of its sweeps."""
        folder = Path(folder)
        cells = read_cells(folder)
        return cls(
            records=tuple(cells.values()),
            failures=tuple(read_failures(folder)),
            names=tuple(cells),
            experiment=read_experiment(folder),
            called=report.names_in(folder),
            advice=report.advice_in(folder),
        )

    @property
    def titles(self) -> list[str]:
        """What each record is called, where cells have names of their own."""
        return [self.called.get(name, "") for name in self.names] if self.called else []

    def asked(self) -> list[metrics.Asked]:
        """The runs that were asked for, those that differ only in their seed together."""
        records: dict[str, list[Record]] = defaultdict(list)
        for name, record in zip(self.names, self.records, strict=False):
            records[name].append(record)
        failed = {failure.cell for failure in self.failures}
        return [
            metrics.Asked(
                title=next((self.called[cell] for cell in cells.values() if cell in self.called), title),
                seeds=tuple(cells),
                failed=tuple(seed for seed, cell in cells.items() if cell in failed),
                records=tuple(record for cell in cells.values() for record in records[cell]),
            )
            for title, cells in together(self.experiment)
        ]

    def groups(self) -> list[metrics.Group]:
        """The records, those that differ only in their seed together."""
        return metrics.group(self.records, self.titles, self.asked())

    def keep(self, folder: Path) -> None:
        """Write summary.json and report.html, once a run is finished."""
        if self.records:
            write_text(folder / "summary.json", dumps(self.summary()))
            self.report(folder / "report.html")

    def summary(self) -> dict[str, Any]:
        """The content of summary.json: per label and metric the mean, its 95% interval and the values.

        `gaps` has the differences between scenarios, where runs differ in nothing else; a label has `transfer` where
        its last task was also learned alone.
        """
        groups = self.groups()
        besides = {
            "gaps": [gap.entry() for gap in metrics.gaps(groups)],
            "failed": [{"cell": f.cell, "reason": f.reason} for f in self.failures],
        }
        found = metrics.summarise(self.records, self.asked(), self.titles)
        for each in metrics.transfers(groups):
            found["methods"][each.label]["transfer"] = each.entry()
        return {**found, **{name: entries for name, entries in besides.items() if entries}}

    def report(self, path: str | Path, title: str | None = None, reproduction: Reproduction | None = None) -> Path:
        """Write the HTML report: one self-contained file."""
        return report.write(self.records, Path(path), title or "", **self._told(reproduction))

    def figures(
        self,
        folder: str | Path,
        form: str = "pdf",
        title: str | None = None,
        reproduction: Reproduction | None = None,
    ) -> Path:
        """Write every figure of the report as a file for a paper (pdf, svg or png), with LaTeX tables."""
        if faults := figures.faults(Path(folder), form):
            raise BadInput(*faults)
        page = report.html(self.records, title or "", **self._told(reproduction))
        figures.write(page, self.latex(reproduction), Path(folder), form)
        return Path(folder)

    def _told(self, reproduction: Reproduction | None) -> dict[str, Any]:
        """What a report is told besides the records."""
        if not self.records and (self.called or reproduction is None):
            raise RunFailed("no run finished, so there is nothing to report")
        return {
            "names": self.titles,
            "failures": {f"{self.called.get(f.cell, '')} {f.cell}".strip(): f.reason for f in self.failures},
            "asked": self.asked(),
            "reproduction": reproduction,
            "experiment": self.experiment,
            "advice": self.advice,
        }

    def latex(self, reproduction: Reproduction | None = None) -> str:
        """The summary as a booktabs table; before it, a paper's numbers beside ours."""
        tables = [report.reproduced(reproduction)] if reproduction else []
        tables += [report.latex(self.records, self.asked(), self.titles)] if self.records or not tables else []
        return "\n".join(tables)

    def text(self) -> str:
        """The table alone; printing a comparison also says why runs failed."""
        return report.text(self.records, self.asked(), self.titles)

    def __str__(self) -> str:
        table = [self.text()] if self.records else []
        return "\n".join([*table, *(f"{f.cell} failed: {f.reason}" for f in self.failures)])

    def __repr__(self) -> str:
        return str(self)  # in a notebook, too


def load(folder: str | Path, rows: Literal["runs", "scores"] = "runs") -> pandas.DataFrame:
    """The finished records of an output folder as a tidy table: one row per run, or per scoring and task.

    `load(DIR).groupby("label")["acc"].mean()`; the columns are those of `holdfast export DIR --csv`.
    """
    found = Comparison.read(folder)
    return metrics.frame(found.records, rows, found.titles)


@dataclass(frozen=True, eq=False)
class Tuned:
    """A method with the settings that validation chose, ready to run."""

    choice: Choice
    cell: Cell

    def run(self, seed: int | None = None, watch: Watch | None = None) -> Record:
        """Run it on the stream as given, scored on its tests; the seed sets weights, batches and the learner."""
        cell = self.choice.applied(self.cell)
        cell.refuse()
        return replace(cell, seed=cell.seed if seed is None else seed).run(watch)


def _in_scenarios(cut: Stream, scenario: str | Sequence[str] | None) -> list[Stream]:
    """The stream in each of these scenarios; none given: as it is."""
    if scenario is None:
        return [cut]
    words = _listed(scenario)
    twice = dict.fromkeys(word for i, word in enumerate(words) if word in words[:i])
    faults = [f"scenario {word!r} is given twice; give it once" for word in twice]
    made = recipe(cut)
    if isinstance(made, Stream):
        faults.append(f"stream {cut.name!r} cannot be cut anew in another scenario; give one stream for each scenario")
    if not words:
        faults.append(f"scenario must be {expected(Scenario)}, or a list of them, not an empty list")
    if faults or isinstance(made, Stream):
        raise BadInput(*faults)
    specs = [changed(made.spec, {"scenario": word}, "given", f"stream {cut.name!r}") for word in words]
    return [replace(made, spec=spec).cut() for spec in specs]


def _every_faults(steps: Any) -> list[str]:
    if steps is None or (type(steps) is int and steps >= 1):
        return []
    return [f"checkpoint_every must be a whole number >= 1, not {steps!r}"]


def _refuse_threads(threads: Any) -> None:
    if isinstance(threads, str) or not fits(Threads, threads):
        raise BadInput(f"threads must be {expected(Threads)}, not {threads!r}")


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _words(given: str | Sequence[str]) -> Sequence[str]:
    return [given] if isinstance(given, str) else given


def _article(given: Any) -> str:
    return f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"


def as_method(given: str | Learner | type[Learner]) -> Learner:
    if isinstance(given, str):
        return method(given)
    if isinstance(given, type) and issubclass(given, Learner):
        given = method(given)
    if not isinstance(given, Learner):
        raise BadInput(f"a method must be a name or a Learner, not {_article(given)}")
    own.whole(methods, type(given), name_of(given))
    return own.fitting(given, f"method {name_of(given)!r}")


def as_stream(given: StreamLike) -> Stream:
    if isinstance(given, str | type):
        return stream(given)
    if isinstance(given, StreamSpec):
        own.whole(streams, type(given), type(given).__name__)
        return own.fitting(given, f"stream {name_of(given)!r}").cut(name_of(given), None, seed=0)
    if not isinstance(given, Stream):
        raise BadInput(f"a stream must be a name, a StreamSpec or made by hf.stream(...), not a {type(given).__name__}")
    return given


def as_net(given: str | NetLike) -> NetLike:
    if isinstance(given, str):
        return net(given)
    if not callable(given) and not isinstance(given, NetSpec):
        raise BadInput(f"net must be a name, an nn.Module or a function of info, not a {type(given).__name__}")
    return given


def as_protocol(given: ProtocolLike) -> Protocol:
    if isinstance(given, str | type):
        return protocol(given)
    if not isinstance(given, Protocol):
        raise BadInput(f"a protocol must be a name or a Protocol, not {_article(given)}")
    own.whole(protocols, type(given), name_of(given))
    return own.fitting(given, f"protocol {name_of(given)!r}")


def experiment_of(cells: Sequence[Cell]) -> Mapping[str, Any]:
    """The content of experiment.json: every resolved setting, versions, data fingerprints, the cells in order, and the
    command, day and machine."""
    unique = {json.dumps(each, sort_keys=True): each for each in (cell.settings() for cell in cells)}
    return {
        "schema": 1,
        "runs": list(unique.values()),
        "seeds": sorted({cell.seed for cell in cells}),
        "cells": [cell.name for cell in cells],
        "versions": versions(),
        "made": {
            "command": process.command(),
            "version": process.VERSION,
            "date": date.today().isoformat(),
            "machine": process.machine(),
        },
    }
