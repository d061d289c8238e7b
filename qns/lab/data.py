"""Data: the findings as CSV files with one row for each measurement."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from io import StringIO

from qns.lab.experiments.findings import Findings
from qns.lab.experiments.loss_experiment import Results

Row = Mapping[str, object]


def data_files(findings: Findings) -> dict[str, bytes]:
    """Name -> content, for the experiments that were run. Equal findings give equal bytes."""
    tables: dict[str, list[Row]] = {
        "flat": [each._asdict() for each in findings.flat],
        "transit-stub": [each._asdict() for each in (*findings.transit_stub, *findings.near)],
        "shapes": [{"shape": shape, **at._asdict()} for shape, at in findings.shapes],
        "locality": [
            {"subscriptions": case.subscriptions, "longest_side": case.longest, **asdict(row)}
            for case, row in findings.locality
        ],
        "strategies": [
            {"seed": seed, **asdict(row), "sent": _counts(row.sent)}
            for seed, row in findings.strategies
        ],
        "associativity": [each._asdict() for each in findings.costs],
    }
    if findings.loss is not None:
        tables |= _loss_tables(findings.loss)
    return {f"{name}.csv": _csv(rows) for name, rows in tables.items() if rows}


def _loss_tables(loss: Results) -> dict[str, list[Row]]:
    return {
        "curves": [
            {"curve": curve.name, "hosts": curve.hosts, "t_s": t_s, "measured": at, "logistic": by}
            for curve in loss.curves
            for t_s, at, by in zip(curve.times_s, curve.measured, curve.fitted, strict=True)
        ],
        "rates": [
            *({"topology": "all", **asdict(each)} for each in loss.rates),
            *(
                {"topology": number, **asdict(each)}
                for of_hosts in loss.rates_by_topology
                for number, each in enumerate(of_hosts)
            ),
        ],
        "loss": [
            {**asdict(each), "delivered": " ".join(map(str, each.delivered)), "d": each.d}
            for each in loss.losses
        ],
    }


def _counts(sent: Mapping[str, int]) -> str:
    return " ".join(f"{kind}={sent[kind]}" for kind in sorted(sent))


def _csv(rows: Sequence[Row]) -> bytes:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows(_cells(row.values()) for row in rows)
    return text.getvalue().encode()


def _cells(values: Iterable[object]) -> list[object]:
    return [repr(float(value)) if isinstance(value, float) else value for value in values]
