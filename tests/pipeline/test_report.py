"""The report is one self-contained, reproducible page that names missing results."""

from __future__ import annotations

import re
from dataclasses import fields
from html.parser import HTMLParser
from itertools import chain

import pyarrow as pa
import pytest
from lxml import etree

from qns.pipeline.report.reasons import PARAMETERS
from qns.pipeline.report.rendering import render, report_html, sections_of
from qns.pipeline.report.results import Results
from qns.pipeline.workload.scenario import HARD, Scenario, Workload
from qns.report.page import Markup, Table, element, table_markup
from tests.pipeline import synthetic

NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
EMPTY_ELEMENTS = {"meta", "br", "hr", "path", "use"}
EVIL = '<script>alert("x")</script>&$\\alpha$'


class Page(HTMLParser):
    """Parses a page and collects ids, links, loaded resources, tags and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = {name: value or "" for name, value in attrs}
        self.ids += [given["id"]] if "id" in given else []
        if tag == "a":
            self.links.append(given["href"])
        elif "xlink:href" in given or "href" in given:
            self.loaded.append(given.get("xlink:href", given.get("href", "")))
        self.loaded += [
            given[name] for name in ("src", "data", "poster", "action") if name in given
        ]
        assert not [name for name in given if name.startswith("on")]
        if tag not in EMPTY_ELEMENTS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY_ELEMENTS:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY_ELEMENTS:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def everything() -> tuple[list[Scenario], dict[str, pa.Table]]:
    sizes = (100, 1_000, 10_000, 100_000)
    main = synthetic.scenarios(sizes=sizes)
    hard = synthetic.scenarios(sizes=sizes, workload=HARD)
    churned = synthetic.scenarios(churn=0.2)
    few = synthetic.scenarios(organisations=4)
    varied = synthetic.scenarios(["partial"], workload=Workload(zipf=0.0), sizes=(10_000,))
    small = synthetic.scenarios(sizes=(100, 1_000))
    of = [*main, *hard, *churned, *few, *varied]
    shares = {"rows": 0.5, "terms": 0.9, "bytes": 1.1, "messages": 0.8}
    return [*of, *small], {
        "subscriptions": synthetic.subscriptions(of),
        "beyond": synthetic.beyond(small, shares),
        "notifications": synthetic.notifications(main, 0.4),
        "trees": synthetic.trees(main, {0: 9, 2: 5}, {0: 9, 2: 2}),
        "cost": pa.concat_tables([synthetic.cost(main, 1.02), synthetic.cost(hard, 1.2)]),
    }


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    of, tables = everything()
    return render({"version": "1.2.3"}, tables, synthetic.described(of))


@pytest.fixture(scope="module")
def html(files: dict[str, bytes]) -> str:
    return files["report.html"].decode()


def page_of(
    run: dict[str, object], tables: dict[str, pa.Table], scenarios: list[dict[str, object]]
) -> str:
    """The page alone, without drawing the picture files."""
    results = Results(tables, scenarios)
    return report_html(run, results, sections_of(results))


def words(html: str) -> str:
    return re.sub(r"\s+", " ", "".join(Page(html).text))


def test_page_shows_no_escaped_markup(html: str) -> None:
    assert not re.search(r"&lt;/?[a-z]|&amp;(#|[a-z]+;)", html)


def test_page_loads_nothing_else(html: str) -> None:
    page = Page(html)
    assert all(each.startswith("#") for each in page.loaded)
    assert not {"script", "link", "img", "iframe", "object", "image"} & {*page.tags}
    assert {*re.findall(r"https?://[^\"'<\s)]+", html)} <= NAMESPACES
    assert "@import" not in html
    assert {*re.findall(r"url\(([^)]*)\)", html)} <= {f"#{each}" for each in page.ids}
    assert "default-src 'none'" in html


def test_every_id_is_unique_and_every_link_has_a_target(html: str, files: dict[str, bytes]) -> None:
    page = Page(html)
    assert len(page.ids) == len({*page.ids})
    for link in chain(page.links, page.loaded):
        assert link[1:] in page.ids if link.startswith("#") else link in files
    for name in re.findall(r'aria-labelledby="([^"]+)"', html):
        assert {*name.split()} <= {*page.ids}
    assert not page.open


def test_all_figures_exist_as_svg_and_png(files: dict[str, bytes]) -> None:
    names = {name.removeprefix("figures/").rsplit(".", 1)[0] for name in files if "/" in name}
    assert {"5.8a", "5.8b", "5.9", "5.10"} < names
    assert names - {"5.8a", "5.8b", "5.9", "5.10"} == {
        "parts", "exact-merging", "trees", "churn", "organisations", "sensitivity", "cost",
    }  # fmt: skip
    for name in names:
        assert files[f"figures/{name}.png"].startswith(b"\x89PNG")
        svg = etree.fromstring(files[f"figures/{name}.svg"])
        assert svg.find("{http://www.w3.org/2000/svg}title") is not None
        assert b"<!DOCTYPE" not in files[f"figures/{name}.svg"]


@pytest.mark.slow
def test_same_tables_give_the_same_bytes(files: dict[str, bytes]) -> None:
    of, tables = everything()
    again = render({"version": "1.2.3"}, tables, synthetic.described(of))
    assert [name for name in files if files[name] != again[name]] == []
    # The order of the rows has no effect.
    turned = {
        name: table.take(pa.array(range(table.num_rows)[::-1])) for name, table in tables.items()
    }
    text = page_of({"version": "1.2.3"}, turned, synthetic.described(of))
    assert text.encode() == files["report.html"]


def test_every_figure_has_a_picture_a_table_and_one_sentence(html: str) -> None:
    sections = re.findall(r'<section id="figure-[^"]*">.*?</section>', html, re.DOTALL)
    assert len(sections) == 11
    for section in sections:
        assert "<figure>" in section
        assert "<table>" in section
        (sentence,) = re.findall(r'<p class="shows">(.*?)</p>', section)
        assert sentence.endswith(".")
        assert len(re.findall(r"[.] [A-Z]", sentence)) == 0


def test_verdicts_are_at_the_top_with_their_numbers(html: str) -> None:
    box = html[: html.index("<nav")]
    assert "✓ yes" in box
    assert "✗ no" in box  # bytes of exact merging
    assert "10.0\u00a0% fewer" in box


def test_contributions_of_the_parts_are_shown_separately(html: str) -> None:
    section = html[html.index('id="figure-parts"') : html.index('id="figure-5-8a"')]
    for part in (
        "trivial",
        "mapping alone",
        "containment alone",
        "both (QNS)",
        "exact merging on top",
        "trees on top, fan-out 2",
    ):
        assert f">{part}</th>" in section


def test_every_parameter_has_a_meaning_and_a_reason(html: str) -> None:
    assert [*PARAMETERS] == [field.name for field in fields(Workload)]
    for name, (meaning, reason) in PARAMETERS.items():
        assert f">{name}</th>" in html
        assert meaning
        assert reason


def test_missing_results_name_the_option_that_computes_them() -> None:
    of = synthetic.scenarios(["partial"], seeds=1)
    text = words(
        page_of({}, {"subscriptions": synthetic.subscriptions(of)}, synthetic.described(of))
    )
    for option in (
        "--exact-merging", "--trees", "--churn", "--organisations", "--sensitivity", "--hard",
        "--publications", "--mapping full", "it has no cost table",
    ):  # fmt: skip
        assert option in text


def test_one_seed_has_no_interval() -> None:
    of = synthetic.scenarios(seeds=1)
    html = page_of({}, {"subscriptions": synthetic.subscriptions(of)}, synthetic.described(of))
    cells = re.findall(r'<td class="number">(.*?)</td>', html)
    assert cells
    assert not [cell for cell in cells if "±" in cell]


def test_run_without_results_gives_a_page() -> None:
    text = words(page_of({}, {}, []))
    assert "This run has no results." in text


def test_text_from_a_scenario_is_escaped() -> None:
    of = synthetic.scenarios(["partial"], seeds=2)
    table = synthetic.subscriptions(of)
    rows = [
        {
            **row,
            "mapping": EVIL,
            "producer": row["producer"].replace("Met01", EVIL),
            "organisation": EVIL,
        }
        for row in table.to_pylist()
    ]
    scenarios = [
        {
            **each,
            "mapping": EVIL,
            "hosts": {EVIL if name == "Met01" else name: [EVIL] for name in each["hosts"]},  # type: ignore[attr-defined]
            "workload": {**each["workload"], EVIL: EVIL},  # type: ignore[dict-item]
        }
        for each in synthetic.described(of)
    ]
    files = render(
        {EVIL: EVIL, "list": [EVIL]},
        {"subscriptions": pa.Table.from_pylist(rows, table.schema)},
        scenarios,
    )
    page = Page(files["report.html"].decode())
    assert "script" not in page.tags
    assert any("<script>" in text for text in page.text)
    for name, data in files.items():
        if name.endswith(".svg"):
            assert b"<script" not in data
            etree.fromstring(data)


def test_replayed_run_has_a_report() -> None:
    """A replayed scenario has no workload, seed or classes, only an id and counts."""
    of = synthetic.scenarios(["full"], seeds=1)
    scenarios = [{"id": each.id, "mapping": "full"} for each in of]
    text = words(
        page_of({"from": "SUBS.parquet"}, {"subscriptions": synthetic.subscriptions(of)}, scenarios)
    )
    assert "The workload was not generated" in text
    assert "SUBS.parquet" in text


def test_text_is_escaped_in_elements_and_tables() -> None:
    assert element("p", "<b>&", title='"') == '<p title="&quot;">&lt;b&gt;&amp;</p>'
    assert element("p", Markup("<b>")) == "<p><b></p>"
    assert "&lt;i&gt;" in table_markup(Table("<i>", ("a",), (("<i>",),)))


def test_long_table_is_folded() -> None:
    rows = tuple((str(number), "1") for number in range(13))
    assert table_markup(Table("long", ("a", "b"), rows)).startswith("<details>")
    assert "<details>" not in table_markup(Table("short", ("a", "b"), rows[:12]))
