"""The laboratory: experiments of figures, reproducible results, atomic reports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from html.parser import HTMLParser
from itertools import permutations
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

import pytest

from qns.errors import NameNotKnown, NotAllowed, StoreFailed, ValueRefused
from qns.lab.data import data_files
from qns.lab.experiments import loss_experiment, self_organisation
from qns.lab.experiments.associativity_cost import associativity_cost, grid_associativity
from qns.lab.experiments.setups import LocalityCase, Setups
from qns.lab.folder import MARK, new_folder
from qns.lab.laboratory import ALL, FIGURES, explore, figures_of, make_report, steps
from qns.lab.simulated.measure import forwarders_on_the_way_in, ideal_hops, tree_hops
from qns.lab.simulated.overlay import Overlay

np = pytest.importorskip("numpy")

TINY = self_organisation.Setup(
    brokers=12, fan_out=4, subscriptions=24, window=8, notifications=60, seeds=2
)
SMALL = Setups(
    loss=loss_experiment.Setup(
        brokers=8, hosts=(10, 20), loss_hosts=(10,), topologies=2, pairs=20, t_on=(1.0, 5.0)
    ),
    organisation=TINY,
    proximity=TINY,
    shapes={name: self_organisation.SHAPES[name] for name in ("sides ≤ 500",)},
    shape_setup=TINY,
    seeds=2,
    brokers=8,
    fan_out=4,
    localities=(0.0, 1.0),
    locality_cases=(LocalityCase(20, 200.0), LocalityCase(40, 500.0)),
    locality_points=50,
    strategy_subscriptions=8,
    strategy_publications=8,
    cost_sizes=(50, 100),
    is_quick=True,
)
pytestmark = pytest.mark.slow

EVERY = figures_of([ALL])
BY_THE_CLOCK = "associativity.csv"


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on every figure, by one job."""
    out = tmp_path_factory.mktemp("lab") / "out"
    make_report(EVERY, out, SMALL)
    return out


def test_data_do_not_depend_on_the_number_of_jobs(report: Path, pool: Executor) -> None:
    progress: list[str] = []
    files = data_files(explore(EVERY, SMALL, pool, progress.append))
    assert files.keys() == {each.name for each in report.glob("*.csv")}
    assert files.keys() == {
        f"{name}.csv"
        for name in (
            "curves",
            "rates",
            "loss",
            "flat",
            "transit-stub",
            "shapes",
            "locality",
            "strategies",
            "associativity",
        )
    }
    for name in files.keys() - {BY_THE_CLOCK}:
        assert (report / name).read_bytes() == files[name]
    assert len(progress) == steps(EVERY, SMALL) - 1  # the last step is the report


def test_same_figures_give_the_same_bytes(tmp_path: Path, pool: Executor) -> None:
    figures = figures_of(["3.10", "4.13"])
    for out, executor in (("one", None), ("two", pool)):
        make_report(figures, tmp_path / out, SMALL, executor)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.*"))
    assert len(files) == 2 + 4 + 4  # page and mark, data, figures as SVG and PNG
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_every_figure_has_a_section_a_table_and_a_sentence_of_numbers(report: Path) -> None:
    html = (report / "report.html").read_text(encoding="utf-8")
    for figure in FIGURES:
        anchor = re.sub(r"[^a-z0-9]+", "-", figure)
        found = re.search(rf'<section id="figure-{anchor}">(.*?)</section>', html, re.DOTALL)
        assert found, figure
        assert "<table>" in found[1]
        assert re.search(r'<p class="shows">[^<]*\d', found[1]), figure
        if figure != "table-3.1":
            for kind in ("svg", "png"):
                assert (report / "figures" / f"{figure}.{kind}").stat().st_size > 1_000
    assert not re.search(r"\bnan\b|\binf\b", html)


def test_page_shows_the_number_of_judged_events(report: Path) -> None:
    html = (report / "report.html").read_text(encoding="utf-8")
    found = re.search(r'<section id="judged">(.*?)</section>', html, re.DOTALL)
    assert found
    rows = re.findall(r"<tr>(.*?)</tr>", found[1], re.DOTALL)[1:]
    cells = [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in rows]
    assert {name: (int(runs), int(events)) for name, runs, events, *_ in cells} == {
        "loss": (2 * 2 + 2 * 2, 4 * 8 + 4 * 20),
        "figure 4.2": (2 * 2 * 2, 8 * 20),
        "flat networks": (5 * 2, 10 * 24),
        "transit-stub networks": (2 * 6 * 2, 24 * 24),
        "other workloads": (2 * 2, 4 * 24),
        "table 2.1": (8 * 2, 16 * 8),
    }
    judged = {name: int(number.replace(",", "")) for name, _, _, number, _ in cells}
    assert all(
        number > 0 for name, number in judged.items() if name != "table 2.1"
    )  # its 8 runs are few


def test_page_on_some_figures_shows_only_these(tmp_path: Path) -> None:
    make_report(("4.12",), tmp_path / "out", SMALL)
    html = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<dt>flat networks</dt>" in html
    assert "<dt>loss</dt>" not in html
    assert "<dt>transit-stub networks</dt>" not in html
    assert "CSV" in html
    make_report(("3.7",), tmp_path / "formula", SMALL)
    html = (tmp_path / "formula" / "report.html").read_text(encoding="utf-8")
    assert "CSV" not in html
    assert "Sizes of this run" not in html


def test_page_shows_no_escaped_markup(report: Path) -> None:
    html = (report / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"&lt;/?[a-z]|&amp;(#|[a-z]+;)", html)


def test_page_loads_nothing_from_elsewhere(report: Path) -> None:
    found: list[tuple[str, str]] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            assert tag not in {"script", "link", "iframe", "object", "img"}
            found.extend(
                (tag, value or "") for name, value in attributes if name in {"href", "src"}
            )

    html = (report / "report.html").read_text(encoding="utf-8")
    Links().feed(html)
    ids = set(re.findall(r'\bid="([^"]+)"', html))
    assert found
    for _, target in found:
        if target.startswith("#"):
            assert target[1:] in ids
        else:
            assert (report / target).is_file()
    assert "url(http" not in html


def test_each_piece_of_work_calls_the_progress_callback(tmp_path: Path) -> None:
    figures, progress = figures_of(["4.2", "associativity"]), []
    make_report(figures, tmp_path / "out", SMALL, None, progress.append)
    assert progress == ["locality"] * 4 + ["associativity", "report"]
    assert len(progress) == steps(figures, SMALL)


def test_formulas_need_no_experiment(tmp_path: Path) -> None:
    figures = figures_of(["3.8", "002-10", "3.8"])
    assert figures == ("3.8", "002-10")
    assert steps(figures, Setups()) == 1
    judged = make_report(figures, tmp_path / "out", Setups())
    assert {each.figure for each in judged} == {"3.8"}
    assert not list((tmp_path / "out").glob("*.csv"))
    assert 'id="judged"' not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_unknown_figure_is_refused_with_near_misses() -> None:
    with pytest.raises(NameNotKnown, match="unknown figure '4\\.21'") as found:
        figures_of(["4.2", "4.21"])
    assert "4.2" in found.value.near_misses
    with pytest.raises(ValueRefused, match="no figure"):
        figures_of([])


def test_full_set_up_has_the_sizes_of_the_papers_or_more() -> None:
    setups = Setups()
    assert setups.loss.hosts == (100, 250, 500)
    assert (setups.loss.pairs, setups.loss.topologies) == (250, 5)
    for setup, seeds in (
        (setups.organisation, 20),
        (setups.proximity, 20),
        (setups.shape_setup, 5),
    ):
        assert (setup.brokers, setup.fan_out, setup.seeds) == (100, 10, seeds)
    assert (setups.brokers, setups.fan_out, setups.seeds) == (100, 10, 5)
    assert setups.quick().is_quick
    assert steps(EVERY, setups.quick()) < steps(EVERY, setups)


def test_reach_of_a_discovery_is_computed_on_the_first_trees() -> None:
    def within(overlay: Overlay, links: int) -> float:
        pairs = [*permutations(range(overlay.brokers), 2)]
        near = [pair for pair in pairs if len(overlay.path(*pair)) - 1 <= links]
        return 100 * len(near) / len(pairs)

    trees = [
        self_organisation.new_system(TINY, "flat", self_organisation.CBR, seed).overlay
        for seed in range(TINY.seeds)
    ]
    assert self_organisation.reaches(TINY) == pytest.approx(
        {f"TTL {ttl}": fmean(within(tree, ttl) for tree in trees) for ttl in (2, 4, 8)}
    )


def test_more_seeds_keep_the_results_of_the_first_ones(pool: Executor) -> None:
    figures = figures_of(["4.12", "4.17", "4.2", "shapes", "table-2.1"])
    few, many = (explore(figures, SMALL.with_seeds(seeds), pool) for seeds in (2, 3))
    for name in ("flat", "transit_stub", "near", "locality", "strategies"):
        of_few, of_many = getattr(few, name), getattr(many, name)
        assert len(of_many) == len(of_few) * 3 / 2
        assert {*map(str, of_few)} < {*map(str, of_many)}
    assert {each.window.seed for each in many.shapes} == {0, 1, 2}


# --- the folder -----------------------------------------------------------------------------------


def test_folder_with_other_files_is_refused_before_measuring(
    tmp_path: Path,
) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(NotAllowed, match="other files: precious"):
        make_report(EVERY, tmp_path, Setups())
    assert [each.name for each in tmp_path.iterdir()] == ["precious"]


def test_report_is_replaced_only_by_one_on_the_same_request(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()  # an empty folder is accepted
    for _ in range(2):
        make_report(("3.7",), out, SMALL)
    assert (out / "report.html").exists()
    with pytest.raises(NotAllowed, match="holds another report"):
        make_report(("3.8",), out, SMALL)
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_interrupted_report_leaves_no_files(tmp_path: Path) -> None:
    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_report(("4.12",), tmp_path / "out", SMALL, None, stop)
    assert not list(tmp_path.iterdir())


def test_interrupted_report_keeps_the_old_one(tmp_path: Path) -> None:
    out, asked = tmp_path / "out", {"figures": ["x"]}
    with new_folder(out, asked) as save:
        save({"report.html": b"old", "figures/a.svg": b"<svg/>"})

    def interrupted() -> None:
        with new_folder(out, asked) as save:
            save({"report.html": b"new"})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (out / "report.html").read_bytes() == b"old"
    assert sorted(each.name for each in out.iterdir()) == ["figures", MARK, "report.html"]
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_unwritable_folder_is_reported_before_measuring(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFailed, match="cannot be written"):
        make_report(EVERY, tmp_path / "file" / "out", Setups())


# --- what is measured for it ----------------------------------------------------------------------


def test_forwarders_are_on_the_way_in_or_between() -> None:
    """On a line 0-1-2-3-4-5: interested brokers, publisher, forwarders way in and between."""
    overlay = Overlay(6, 2)
    for broker in range(5):
        overlay.link(broker, broker + 1)
    cases = [
        ({3, 5}, 0, 2, 1),
        ({3, 5}, 4, 0, 0),
        ({3, 5}, 5, 0, 1),
        (set(), 2, 0, 0),
        ({0}, 0, 0, 0),
    ]
    wanted = np.array([[broker in some for broker in range(6)] for some, *_ in cases])
    publishers = np.array([publisher for _, publisher, _, _ in cases])
    way_in = forwarders_on_the_way_in(overlay, wanted, publishers)
    pure = tree_hops(overlay, wanted, publishers) - ideal_hops(wanted, publishers)
    assert way_in.tolist() == [before for _, _, before, _ in cases]
    assert (pure - way_in).tolist() == [between for _, _, _, between in cases]


def test_sweep_and_grid_find_the_same_associativity() -> None:
    costs = associativity_cost((20, 200), seed=3)
    assert [each.rectangles for each in costs] == [20, 200]
    assert all(each.difference < 1e-12 and 0 < each.associativity < 1 for each in costs)
    assert grid_associativity([], []) == 0


def test_other_shapes_are_run_with_the_same_seeds() -> None:
    shapes = {name: self_organisation.SHAPES[name] for name in list(self_organisation.SHAPES)[:2]}
    found = self_organisation.on_shapes(replace(TINY, seeds=2), shapes)
    assert [name for name, _ in found] == [name for name in shapes for _ in range(4)]
    assert {window.subscriptions for _, window in found} == {TINY.subscriptions}
    wide = [window.ideal for name, window in found if name == "sides ≤ 200"]
    narrow = [window.ideal for name, window in found if name == "sides ≤ 50"]
    assert min(wide) > max(narrow)
