"""Report: the findings as one page that can be read, printed, sent and cited.

The same findings give the same bytes; only the cost of associativity is by the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qns import __version__
from qns.lab.findings import Findings
from qns.lab.report.comparison_sections import comparison_sections
from qns.lab.report.judged_section import judged_section
from qns.lab.report.loss_sections import measured_sections
from qns.lab.report.model_sections import model_sections, rapidity_section
from qns.lab.report.organisation_sections import organisation_sections
from qns.lab.report.proximity_sections import proximity_sections, starts_of
from qns.lab.report.runs import Runs
from qns.lab.setups import ENOUGH_SEEDS, REASONS
from qns.report.claim import Claim
from qns.report.document import contents, definitions, picture_files, verdict_box
from qns.report.page import Markup, Table, element, joined, page, table_markup
from qns.report.section import Section, section_markup

TITLE: Final = "Routing and loss in the laboratory"
_METHOD: Final = (
    (
        "Pure forwarder",
        "a broker that had a notification, wants nothing of it and is not its publisher. Hops = "
        "ideal + pure forwarders.",
    ),
    ("Ideal", "one hop for each interested broker other than the publisher's."),
    (
        "Way in, between",
        "pure forwarders before a notification reaches the smallest part of the tree that joins "
        "all who want it, and those inside that part.",
    ),
    (
        "Messages per operation",
        "(messages per subscription + R · hops per notification) / (1 + R), over all windows.",
    ),
    ("Break-even", "the R at which a variant and CBR need equally many of them."),
    (
        "Same conditions",
        "every variant has the same network, first tree, subscriptions and notifications as CBR "
        "of the same seed; differences are taken seed by seed.",
    ),
    (
        "Intervals",
        "± is half the 95 % confidence interval of the mean over seeds or topologies (Student's "
        "t); with two seeds it is very wide.",
    ),
)
_OPEN: Final = (
    "Sizes, shapes and the rules of claims were fixed after a pilot on one seed of CBR and SOCBR "
    "(up to 1,500 subscriptions), of figure 4.2 and of table 2.1 and after a quick run, not "
    "before. The figure 'shapes' has all shapes of that pilot. Where a verdict depends on the "
    "size, its numbers say so.",
    f"That figures 4.12 to 4.20 have {ENOUGH_SEEDS} seeds, that both first trees are run, that "
    "pbSOCBR is also run with the lightest link cut, and that a TTL within ±2 % is not worse was "
    "fixed later, after five seeds had left claims open and more had been seen.",
    "What the thesis leaves open is chosen above with its reason, and the numbers depend on it: "
    "how subscriptions are drawn, how long a message is handled, how many subscriptions a run has.",
    "The papers' pictures are not at hand; only numbers and words of their text are compared.",
    "Latencies of chapter 4 have no handling times, so seconds are not compared, only how they "
    "change.",
    "Reconfigurations here come one subscription after the other; what concurrent ones cost is not "
    "measured.",
)
_FURTHER: Final = (
    ("judged", "Every run was judged"),
    ("parameters", "Parameters"),
    ("method", "Method"),
    ("open", "What is open"),
    ("run", "This run"),
)


def render(figures: Sequence[str], findings: Findings, judged: Sequence[Claim]) -> dict[str, bytes]:
    """Every file of the report: name in its folder -> content."""
    sections = sections_of(figures, findings)
    checked = judged_section(findings)
    html = page(
        TITLE,
        [
            element(
                "header",
                element("h1", TITLE),
                element("p", _lead(judged, findings), class_="lead"),
            ),
            verdict_box(judged),
            contents(sections, _FURTHER if checked else _FURTHER[1:]),
            *map(section_markup, sections),
            *([checked] if checked else ()),
            _parameters(findings),
            element("section", element("h2", "Method"), definitions(_METHOD), id="method"),
            element(
                "section",
                element("h2", "What is open"),
                element("ul", joined(element("li", each) for each in _OPEN)),
                id="open",
            ),
            _about(figures, findings),
        ],
    )
    return picture_files(sections) | {"report.html": html.encode()}


def sections_of(figures: Sequence[str], findings: Findings) -> list[Section]:
    known = {each.name: each for each in (*model_sections(), rapidity_section())}
    if findings.loss is not None:
        known |= {each.name: each for each in measured_sections(findings.loss)}
    if findings.flat:
        known |= {each.name: each for each in organisation_sections(Runs(findings.flat))}
    if findings.transit_stub:
        starts = starts_of(findings.transit_stub, findings.near)
        known |= {each.name: each for each in proximity_sections(starts, findings.diameters_ms)}
    known |= comparison_sections(findings)
    return [known[figure] for figure in figures]


def _lead(judged: Sequence[Claim], findings: Findings) -> str:
    numbers = [sum(each.holds is holds for each in judged) for holds in (True, False)]
    quick = (
        " This is a quick run: small systems and few seeds, enough to see that all works and not "
        "to cite."
        if findings.setups.is_quick
        else ""
    )
    return (
        "Chapters 2 to 4 of the thesis and paper 002, measured again on the code that QNS runs on: "
        f"{numbers[0]} of {len(judged)} claims hold here, {numbers[1]} do not, each with numbers "
        f"and its reason.{quick}"
    )


def _parameters(findings: Findings) -> Markup:
    table = Table("What was chosen, and why", ("parameter", "reason"), REASONS, texts=2)
    return element(
        "section",
        element("h2", "Parameters and their reasons"),
        table_markup(table),
        *_sizes(findings),
        id="parameters",
    )


def _sizes(findings: Findings) -> list[Markup]:
    """Of what was run."""
    setups, sizes = findings.setups, []
    if findings.loss:
        loss = setups.loss
        sizes.append(
            (
                "loss",
                f"{loss.brokers} brokers on {', '.join(map(str, loss.hosts))} hosts, "
                f"{loss.topologies} topologies, {loss.pairs} pairs for each T_ON",
            )
        )
    for name, found, setup in (
        ("flat networks", findings.flat, setups.organisation),
        ("transit-stub networks", findings.transit_stub, setups.proximity),
        ("other workloads", findings.shapes, setups.shape_setup),
    ):
        if found:
            sizes.append(
                (
                    name,
                    f"{setup.brokers} brokers, fan-out {setup.fan_out}, "
                    f"{setup.subscriptions:,} subscriptions, {setup.seeds} seeds",
                )
            )
    if findings.locality or findings.strategies:
        told = f"{setups.brokers} brokers, fan-out {setups.fan_out}, {setups.seeds} seeds"
        sizes.append(("locality, strategies", told))
    return [element("h3", "Sizes of this run"), definitions(sizes)] if sizes else []


def _about(figures: Sequence[str], findings: Findings) -> Markup:
    told = {
        "qns": __version__,
        "figures": ", ".join(figures),
        "kind": "quick" if findings.setups.is_quick else "full",
    }
    data = "The data are beside this page as CSV files, the " if _sizes(findings) else "The "
    return element(
        "section",
        element("h2", "This run"),
        definitions(told),
        element(
            "p",
            "Two runs of the same version, kind and number of seeds have the same tables, whatever "
            f"the number of jobs, but for seconds. {data}figures are in ",
            element("code", "figures/"),
            ".",
            class_="small",
        ),
        id="run",
    )
