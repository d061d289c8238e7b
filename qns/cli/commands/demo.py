"""`qns demo`: runs three agencies as processes through the worked case and a crash."""

from __future__ import annotations

import shlex
import shutil
import signal
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from qns.cli.demo.crash import CRASH_EVENTS, play_crash
from qns.cli.demo.peers import DemoPeers
from qns.cli.demo.story import Story
from qns.cli.demo.worked_case import Count, WorkedCase
from qns.cli.options import Commands, new_command
from qns.cli.problems import Problem
from qns.cli.screen import Part, Screen
from qns.d2q.event_json import EventReader
from qns.d2q.shipped import AGENCIES
from qns.errors import QnsError

_DESCRIPTION = """
Shows QNS at work. Starts the peers of the three agencies of the thesis as three processes,
subscribes for their users, publishes events, changes subscriptions, and kills a forwarder
that has an event in custody. Prints the deliveries of each user and how many messages merging
saved, then stops the peers.
"""
_EXAMPLES = ("qns demo",)
_INTRODUCTION: tuple[Part, ...] = (
    ("QNS", "bold"),
    ": three agencies share data on enterprises and subscribe to changes of its quality\n"
    "(the worked case of the thesis, table 5.1 and figure 5.5; three processes that use SOAP\n"
    "over mutual TLS, with certificates made for this demo)",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "demo", "show QNS at work on three agencies", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="leave the peers running and print their addresses",
    )
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    screen.line(*_INTRODUCTION)
    folder = Path(mkdtemp(prefix="qns-demo-"))
    peers = DemoPeers.prepared(folder)
    story = Story(screen, peers)
    keep = failed = False
    try:
        with _ended_like_interrupted():
            peers.start()
            _play(story)
        keep = args.keep
    except QnsError as problem:
        failed = True
        screen.error(Problem.of(problem))
        screen.error(Problem(f"the demo ends here; the logs of the peers are in {folder}"))
        return 1
    finally:
        story.close()
        if not keep:
            peers.stop()
        if not keep and not failed:
            shutil.rmtree(folder, ignore_errors=True)
    screen.line()
    if keep:
        _show_next_steps(screen, peers, folder)
    else:
        screen.line(("all peers are stopped; see also qns --help and examples/agencies", "dim"))
    return 0


def _play(story: Story) -> None:
    peers = story.peers
    case = WorkedCase(story)
    case.show_subscriptions()  # meanwhile the peers start
    with story.waiting("INPS, INAIL and CoC start"):
        peers.wait_until_ready()
        # Before the first hello, a peer may have to send its view twice.
        story.wait_for("the first hello of all peers", peers.are_acquainted)
    case.subscribe_all()
    case.show_tables()
    case.publish_events()
    case.change_users()
    reached = case.reached(EventReader(AGENCIES).from_fields(CRASH_EVENTS[0]))
    play_crash(story, reached)
    case.check({event["id"]: reached for event in CRASH_EVENTS})
    _show_outcome(story, case.change_subs, case.notifies)


def _show_outcome(story: Story, change_subs: Count, notifies: Count) -> None:
    story.heading("The deliveries of each user, and what merging saved until the crash")
    everybody = (*story.users.values(), *story.gone.values())
    for user in sorted(everybody, key=lambda user: user.name):
        left = "left" if user.name in story.gone else ""
        story.line(
            (f"{user.organisation:<7}", "bold"),
            f"{user.name}  {user.subscription}  ",
            (f"{' '.join(user.got) or 'nothing':<13}", "bold green"),
            (left, "dim"),
        )
    story.line(
        f"changeSub: {change_subs.sent} messages instead of {change_subs.otherwise}",
        ("   if each subscription went to each producer that it concerns", "dim"),
    )
    story.line(
        f"notify:    {notifies.sent} messages instead of {notifies.otherwise}",
        ("    if each user got a message of its own", "dim"),
    )


def _show_next_steps(screen: Screen, peers: DemoPeers, folder: Path) -> None:
    screen.line(("still running:", "bold"), f" everything is in {folder}")
    for name, peer in peers.peers.items():
        screen.line(f"   {name:<6} {peer.url}   health and metrics beside it")
    first = next(iter(peers.peers.values()))
    screen.line(("to try:", "bold"), f" qns watch 'Enterprise/Holder' --peer {first.url}")
    numbers = " ".join(str(peer.process_id) for peer in peers.peers.values())
    screen.line(("to stop it:", "bold"), f" kill {numbers}; rm -r {shlex.quote(str(folder))}")


@contextmanager
def _ended_like_interrupted() -> Iterator[None]:
    """Handles SIGTERM like Ctrl-C, so that the peers are stopped."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
