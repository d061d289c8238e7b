"""`qns loss`: computes how likely a notification is delivered, and what would raise that."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict, dataclass
from math import floor, inf, isfinite, log10
from typing import Any, Final

from qns.cli.metrics_page import Measured, PeerMetrics
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.screen import Screen
from qns.errors import QnsError, ValueRefused, shorten
from qns.lab.experiments.loss_model import RAPIDITY, Delays

_DESCRIPTION = """
Computes the probability d that a notification is delivered, if it is published while a
matching subscription lasts (T_ON seconds). It is lost if its publisher does not have the
subscription yet (up to T_sub), or if the subscriber has left when it arrives (up to T_diff).

The two delays are read from a running peer (--peer), or given (--t-sub and --t-diff, with r of
paper 002 for their distribution), or computed from the number of brokers N and their update
rate alpha (eq. 3.6 of the thesis). Times are in seconds.
"""
_EXAMPLES = (
    "qns loss --t-on 3600 --t-sub 12.2 --t-diff 9.95",
    "qns loss --t-on 150 --n 100 --alpha 1.5",
    "qns loss --t-on 60 --t-sub 12 --t-diff 8 --json",
)
_LONGEST_S: Final = 1e12
_BY_RAPIDITY: Final = "d = 1 - (T_sub + T_diff) / ((r + 1) T_ON)"
_BY_RATES: Final = "d = 1 - (2 / alpha) ln(N) / T_ON"
_BY_MEANS: Final = "d = 1 - (mean of T_sub + mean of T_diff) / T_ON"


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands,
        "loss",
        "compute how likely a notification is delivered",
        _DESCRIPTION,
        _EXAMPLES,
    )
    option = parser.add_argument
    option("--t-on", metavar="SECONDS", required=True, help="duration of the subscription")
    option("--peer", metavar="URL", help="a running peer, such as http://127.0.0.1:8701/")
    option("--t-sub", metavar="SECONDS", help="time until every producer has a subscription")
    option("--t-diff", metavar="SECONDS", help="time until every consumer has a notification")
    option("--r", metavar="R", help=f"rapidity of --t-sub and --t-diff (default: {RAPIDITY:g})")
    option("--n", metavar="N", help="number of brokers")
    option("--alpha", metavar="RATE", help="update rate of the brokers, per second")
    add_json_option(parser, "the answer as one JSON object")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    t_on_s = _seconds("--t-on", args.t_on)
    source = _source(args)
    d = source.delays.d(t_on_s)
    ways = _ways(source.delays, t_on_s) if d < 1 else []
    if screen.as_json:
        screen.json(_as_json(source, t_on_s, d, ways))
    else:
        _show(source, t_on_s, d, ways, screen)
    return 0


# --- the delays -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """T_sub and T_diff, given by options or measured at a peer, and how they are printed."""

    delays: Delays
    model: str
    lines: tuple[str, ...]
    """The delays as lines of text."""
    measured: dict[str, int]
    """The numbers of subscriptions and deliveries that a peer has measured."""


def _source(args: Namespace) -> _Source:
    by_times = args.t_sub is not None or args.t_diff is not None
    by_rates = args.n is not None or args.alpha is not None
    if by_rates and (by_times or args.peer is not None or args.r is not None):
        raise QnsError("too many options", remedy="give only --n and --alpha, or neither")
    if by_rates:
        return _from_rates(args)
    if args.peer is not None:
        return _from_peer(args)
    if args.t_sub is None or args.t_diff is None:
        raise QnsError(
            "the delays are missing",
            remedy="give --peer URL, or --t-sub and --t-diff, or --n and --alpha",
        )
    rapidity = _rapidity(args)
    t_sub_s, t_diff_s = _seconds("--t-sub", args.t_sub), _seconds("--t-diff", args.t_diff)
    line = f"T_sub {t_sub_s:,g} s, T_diff {t_diff_s:,g} s, r = {rapidity:g}"
    return _Source(Delays.by_rapidity(t_sub_s, t_diff_s, rapidity), _BY_RAPIDITY, (line,), {})


def _from_rates(args: Namespace) -> _Source:
    if args.n is None or args.alpha is None:
        raise QnsError("one of --n and --alpha is missing", remedy="give both --n and --alpha")
    if not (args.n.isascii() and args.n.isdecimal() and len(args.n) <= 12):
        raise ValueRefused(f"--n {shorten(args.n)} is no number of brokers", remedy="as in 100")
    brokers, alpha = int(args.n), _number("--alpha", args.alpha)
    delays = Delays.by_rates(brokers, alpha, alpha)
    line = f"N = {brokers:,}, alpha = {alpha:g}: T_sub = T_diff = {delays.t_sub_s:,.4g} s"
    return _Source(delays, _BY_RATES, (line,), {})


def _from_peer(args: Namespace) -> _Source:
    """Reads the delays of a peer. An option --t-sub or --t-diff replaces the measured delay."""
    rapidity = _rapidity(args)
    metrics = PeerMetrics.read(args.peer)
    lines, counted, delays = [], {}, []
    for name, option, given, of_peer, what in (
        ("T_sub", "--t-sub", args.t_sub, metrics.t_sub, "subscriptions"),
        ("T_diff", "--t-diff", args.t_diff, metrics.t_diff, "deliveries"),
    ):
        if given is None:
            found = of_peer()
            counted[what] = found.number
            at_most = f"at most {found.longest_s:,g} s" if found.longest_s < inf else "unbounded"
            lines.append(
                f"{name} {at_most}, on average {found.mean_s:,.3g} s ({found.number:,} {what})"
            )
        else:
            longest_s = _seconds(option, given)
            found = Measured(0, longest_s / (rapidity + 1), longest_s)
            lines.append(f"{name} {longest_s:,g} s, as given, r = {rapidity:g}")
        delays.append(found)
    lines.append(f"measured at {metrics.base} since it was started")
    sub, diff = delays
    both = Delays(sub.longest_s, diff.longest_s, sub.mean_s, diff.mean_s)
    return _Source(both, _BY_MEANS, tuple(lines), counted)


# --- what would raise it --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Way:
    name: str
    what: str
    d: float


def _ways(delays: Delays, t_on_s: float) -> list[_Way]:
    longer_s = 2 * t_on_s
    ways = [
        _Way("longer", f"a subscription of {longer_s:,g} s, twice as long", delays.d(longer_s)),
        _Way("faster", "T_sub and T_diff of half the length", delays.faster(2).d(t_on_s)),
    ]
    if delays.is_exact(t_on_s):  # otherwise late notifications may be lost: there is no number
        ways += [
            _Way(
                "available",
                f"notifications that stay available for T_sub, {delays.t_sub_s:,.4g} s",
                delays.d_available(t_on_s),
            ),
            _Way(
                "available_before",
                "notifications available for T_ON, with older ones (eq. 3.2)",
                delays.d_available_before(t_on_s, t_on_s),
            ),
        ]
    return ways


# --- printing -------------------------------------------------------------------------------------


def _show(source: _Source, t_on_s: float, d: float, ways: list[_Way], screen: Screen) -> None:
    bound = not source.delays.is_exact(t_on_s)
    screen.line(
        ("d ≥ " if bound else "d = ", "bold"),
        (_probability(d), "bold green"),
        f": {'at most ' if bound else ''}{_of_1000(d)} of 1,000 notifications are lost",
    )
    screen.line(f"  T_ON {t_on_s:,g} s")
    for line in source.lines:
        screen.line(f"  {line}")
    screen.line(f"  {source.model}")
    if bound:
        screen.line("  T_ON is shorter than T_sub + T_diff: this is a lower bound")
    if not ways:
        screen.line("nothing can raise it")
        return
    screen.line()
    screen.line((f"{'what would raise it':<62}{'d':>9}{'lost':>8}", "bold"))
    for way in ways:
        screen.line(f"  {way.what:<60}{_probability(way.d):>9}{_of_1000(way.d):>8}")


def _as_json(source: _Source, t_on_s: float, d: float, ways: list[_Way]) -> dict[str, Any]:
    numbers = {**asdict(source.delays), "rapidity": source.delays.rapidity}
    return {
        "d": d,
        "loss": 1 - d,
        "is_lower_bound": not source.delays.is_exact(t_on_s),
        "t_on_s": t_on_s,
        **{name: _finite(value) for name, value in numbers.items()},
        "model": source.model,
        "measured": source.measured,
        "would_raise": [asdict(way) for way in ways],
    }


def _probability(d: float) -> str:
    """Formats d with enough digits to show the loss."""
    digits = 3 if d >= 1 or d <= 0 else min(9, max(3, 1 - floor(log10(1 - d))))
    return f"{d:.{digits}f}"


def _of_1000(d: float) -> str:
    return f"{1_000 * (1 - d):.2g}" if d > 0.9 else f"{1_000 * (1 - d):.0f}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _rapidity(args: Namespace) -> float:
    return RAPIDITY if args.r is None else _number("--r", args.r)


def _seconds(option: str, text: str) -> float:
    value = _number(option, text, "seconds, as in 3600 or 0.5")
    if value > _LONGEST_S:
        raise ValueRefused(f"{option} {shorten(text)} is too long", remedy=f"up to {_LONGEST_S:g}")
    return value


def _number(option: str, text: str, remedy: str = "as in 1.14") -> float:
    try:
        value = float(text)
    except ValueError:
        value = inf
    if not isfinite(value):
        raise ValueRefused(f"{option} {shorten(text)} is no number", remedy=remedy)
    return value
