"""Tests of the admin port: who may use it, and how it treats requests."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from qns import __version__
from qns.errors import QnsError, ValueRefused
from qns.runtime import admin_socket
from qns.runtime.admin import server as server_module
from qns.runtime.admin.client import call
from qns.runtime.admin.operation import Arguments, Context, Operation, Report, Result
from qns.runtime.admin.protocol import MOST_REQUEST_BYTES, PROTOCOL, write_line, write_request
from qns.runtime.admin.registry import OPERATIONS
from qns.runtime.admin_socket import bind_socket, user_of
from tests.runtime.admin.stage import ask, running_peer, send


def error_of(lines: list[dict[str, Any]]) -> dict[str, str]:
    """Returns the error of an answer, which has nothing else."""
    (line,) = lines
    (found,) = line.values()
    assert line == {"error": found}
    assert found["problem"]
    fields: dict[str, str] = found
    return fields


async def _count(_: Context, arguments: Arguments, report: Report) -> Result:
    for number in range(arguments["to"]):
        await report({"number": number})
    return {"counted": arguments["to"], "note": arguments.get("note", "none")}


COUNT = {"count": Operation("count", _count, {"to": int}, {"note": str})}


# --- the socket -----------------------------------------------------------------------------------


def test_socket_is_created_with_mode_600_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.admin"
    seen = []
    chmod = Path.chmod

    def observed(self: Path, mode: int, **more: bool) -> None:
        seen.append(stat.S_IMODE(self.stat().st_mode))
        chmod(self, mode, **more)

    monkeypatch.setattr(Path, "chmod", observed)
    before = os.umask(0)
    try:
        bind_socket(path).close()
        assert os.umask(0) == 0  # the umask of the process is restored
    finally:
        os.umask(before)
    assert seen == [0o600]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_stale_socket_of_a_killed_peer_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.admin"
    bind_socket(path).close()  # nobody listens, as after kill -9
    bind_socket(path).close()
    assert path.is_socket()


def test_socket_of_a_running_process_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.admin"
    first = bind_socket(path)
    first.listen()
    with pytest.raises(QnsError, match="in use by another process"):
        bind_socket(path)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    first.close()


def test_file_at_the_path_of_the_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.admin"
    path.write_text("precious")
    with pytest.raises(QnsError, match="a file of another kind"):
        bind_socket(path)
    assert path.read_text() == "precious"


def test_missing_folder_of_the_socket_is_reported(tmp_path: Path) -> None:
    with pytest.raises(QnsError, match="cannot be opened: there is no folder"):
        bind_socket(tmp_path / "none" / "a.admin")


def test_user_at_the_other_end_is_known_on_linux() -> None:
    if not hasattr(socket, "SO_PEERCRED"):
        pytest.skip("this platform has no SO_PEERCRED")
    one, other = socket.socketpair(socket.AF_UNIX)
    assert user_of(one.fileno()) == os.geteuid()
    one.close()
    other.close()


async def _refused_user(folder: Path) -> list[dict[str, Any]]:
    async with running_peer(folder) as running:
        return await ask(running, "status")


def test_other_users_are_refused_even_if_they_can_open_the_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "user_of", lambda _: 12_345)
    error = error_of(asyncio.run(_refused_user(tmp_path)))
    assert "12345 may not use the admin port" in error["problem"]
    assert admin_socket.is_permitted(0)
    assert admin_socket.is_permitted(os.geteuid())


def test_socket_is_gone_after_the_peer_has_stopped(tmp_path: Path) -> None:
    async def scenario() -> Path:
        async with running_peer(tmp_path) as running:
            assert running.admin.path == tmp_path / "INPS.db.admin"
            assert running.admin.path.is_socket()
            return running.admin.path

    assert not asyncio.run(scenario()).exists()


# --- requests -------------------------------------------------------------------------------------


def test_status_is_answered_with_health_and_work(tmp_path: Path) -> None:
    async def scenario() -> list[dict[str, Any]]:
        async with running_peer(tmp_path) as running:
            return await ask(running, "status")

    (line,) = asyncio.run(scenario())
    result = line["result"]
    assert result["organisation"] == "INPS"
    assert result["version"] == __version__
    assert result["pid"] == os.getpid()
    assert result["owed"] == result["custody"] == result["dead_letters"] == 0


def test_progress_is_reported_before_the_result(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    async def scenario() -> dict[str, Any]:
        async with running_peer(tmp_path, operations=COUNT) as running:
            return await asyncio.to_thread(
                call, running.admin.path, "count", {"to": 3}, seen.append
            )

    assert asyncio.run(scenario()) == {"counted": 3, "note": "none"}
    assert seen == [{"number": 0}, {"number": 1}, {"number": 2}]


_HEAD = {"protocol": PROTOCOL, "version": __version__}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"\n", "not JSON"),
        (b"GET / HTTP/1.1\r\n", "not JSON"),
        (b"[" * 100_000 + b"\n", "not JSON"),
        (b"[]\n", "not an object"),
        (b"\xff\n", "not JSON"),
        (write_line({**_HEAD, "operation": 3}), "operation is not a text"),
        (write_line({**_HEAD, "operation": "count", "arguments": []}), "not an object"),
        (write_line({**_HEAD, "operation": "count", "secret": 1}), "no key 'secret'"),
        (write_line({**_HEAD, "operation": "cuont"}), "unknown operation 'cuont'"),
        (write_request("count", {}), "argument to is missing"),
        (write_request("count", {"to": "3"}), "'3' is not a whole number"),
        (write_request("count", {"to": True}), "is not a whole number"),
        (write_request("count", {"to": 1, "note": 5}), "5 is not a text"),
        (write_request("count", {"to": 1, "tow": 5}), "unknown argument 'tow'"),
        (b'{"protocol": 1', "does not end with a line break"),
        (b'{"protocol": "' + b"x" * MOST_REQUEST_BYTES + b'"}\n', "larger than"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_malformed_request_is_refused(tmp_path: Path, line: bytes, problem: str) -> None:
    ran = []

    async def run(*arguments: Any) -> Result:
        ran.append(arguments)
        return {}

    operations = {"count": Operation("count", run, {"to": int}, {"note": str})}

    async def scenario() -> list[dict[str, Any]]:
        async with running_peer(tmp_path, operations=operations) as running:
            if line.endswith(b"\n"):
                return await send(running.admin.path, line)
            reader, writer = await asyncio.open_unix_connection(str(running.admin.path))
            writer.write(line)
            writer.write_eof()
            answer = await reader.read()
            writer.close()
            return [json.loads(answer)]

    assert problem in error_of(asyncio.run(scenario()))["problem"]
    assert not ran


def test_request_of_another_protocol_names_both_versions(tmp_path: Path) -> None:
    async def scenario() -> list[dict[str, Any]]:
        async with running_peer(tmp_path) as running:
            line = {"protocol": 2, "version": "9.0.0", "operation": "status", "arguments": {}}
            return await send(running.admin.path, write_line(line))

    error = error_of(asyncio.run(scenario()))
    assert "QNS 9.0.0" in error["problem"]
    assert f"QNS {__version__}" in error["problem"]
    assert "restart the peer" in error["remedy"]


def test_unknown_operation_of_another_version_asks_for_a_restart(tmp_path: Path) -> None:
    async def scenario() -> list[dict[str, Any]]:
        async with running_peer(tmp_path) as running:
            line = {"protocol": PROTOCOL, "version": "9.0.0", "operation": "fly", "arguments": {}}
            return await send(running.admin.path, write_line(line))

    error = error_of(asyncio.run(scenario()))
    assert f"the peer is of QNS {__version__}" in error["problem"]
    assert "9.0.0" in error["remedy"]


def test_slow_request_is_refused(tmp_path: Path) -> None:
    async def scenario() -> list[dict[str, Any]]:
        async with running_peer(tmp_path) as running:
            running.admin.request_within_s = 0.05
            return await send(running.admin.path, b"{")

    assert "did not arrive within" in error_of(asyncio.run(scenario()))["problem"]


def test_refusal_by_an_operation_is_answered_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(*_: Any) -> Result:
        raise ValueRefused("not today", place="here", remedy="tomorrow")

    async def scenario() -> list[dict[str, Any]]:
        operations = {"refuse": Operation("refuse", refuse)}
        async with running_peer(tmp_path, operations=operations) as running:
            return await ask(running, "refuse")

    error = error_of(asyncio.run(scenario()))
    assert error == {"problem": "not today", "place": "here", "remedy": "tomorrow"}
    loud = [each for each in caplog.records if each.levelname in ("WARNING", "ERROR")]
    assert [each.getMessage() for each in loud] == ["a command of the operator was refused"]


def test_unexpected_error_is_answered_without_its_text(tmp_path: Path) -> None:
    async def fail(*_: Any) -> Result:
        raise RuntimeError("a secret")

    async def scenario() -> list[dict[str, Any]]:
        operations = {"fail": Operation("fail", fail)}
        async with running_peer(tmp_path, operations=operations) as running:
            return await ask(running, "fail")

    error = error_of(asyncio.run(scenario()))
    assert error["problem"] == "an unexpected error"


def test_operation_is_cancelled_when_the_operator_disconnects(tmp_path: Path) -> None:
    async def scenario() -> bool:
        begun, cancelled = asyncio.Event(), asyncio.Event()

        async def wait(*_: Any) -> Result:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return {}

        async with running_peer(tmp_path, operations={"wait": Operation("wait", wait)}) as running:
            _, writer = await asyncio.open_unix_connection(str(running.admin.path))
            writer.write(write_request("wait", {}))
            await begun.wait()
            writer.close()
            await cancelled.wait()
            return True

    assert asyncio.run(scenario())


def waiting_operation() -> tuple[asyncio.Event, dict[str, Operation]]:
    """Returns the operation `wait`, which never ends, and the event that it sets when it begins."""
    begun = asyncio.Event()

    async def wait(*_: Any) -> Result:
        begun.set()
        await asyncio.Event().wait()
        return {}

    return begun, {"wait": Operation("wait", wait)}


def test_operation_under_way_fails_with_a_reason_when_the_peer_stops(tmp_path: Path) -> None:
    async def scenario() -> list[dict[str, Any]]:
        begun, operations = waiting_operation()
        async with running_peer(tmp_path, operations=operations) as running:
            asking = asyncio.create_task(ask(running, "wait"))
            await begun.wait()
        return await asking

    assert error_of(asyncio.run(scenario()))["problem"] == "the peer is stopping"


def test_too_many_commands_at_once_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 1)

    async def scenario() -> list[dict[str, Any]]:
        begun, operations = waiting_operation()
        async with running_peer(tmp_path, operations=operations) as running:
            asking = asyncio.create_task(ask(running, "wait"))
            await begun.wait()
            found = await ask(running, "wait")
        await asking
        return found

    assert "commands are running already" in error_of(asyncio.run(scenario()))["problem"]


def test_operations_are_registered_under_their_names() -> None:
    assert all(name == each.name for name, each in OPERATIONS.items())


# --- the client -----------------------------------------------------------------------------------


def test_client_reports_that_the_peer_is_not_running(tmp_path: Path) -> None:
    path = tmp_path / "a.admin"
    with pytest.raises(QnsError, match="the peer is not running"):
        call(path, "status", {})
    bind_socket(path).close()
    with pytest.raises(QnsError, match="the peer is not running"):
        call(path, "status", {})


def test_client_reports_a_socket_that_this_user_may_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")  # root can open every socket

    monkeypatch.setattr(socket.socket, "connect", refuse)
    with pytest.raises(QnsError, match="may not use the admin port"):
        call(tmp_path / "a.admin", "status", {})


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "it closed the connection"),
        (b"no\n", "not JSON"),
        (b'{"error": 5}\n', "an unknown error"),
        (b'{"error": {"problem": "p", "remedy": "r"}}\n', r"p \(r\)"),
    ],
)
def test_client_reports_unusual_answers(tmp_path: Path, answer: bytes, problem: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answer)
        writer.close()

    async def scenario() -> None:
        path = tmp_path / "a.admin"
        server = await asyncio.start_unix_server(serve, str(path))
        async with server:
            await asyncio.to_thread(call, path, "status", {})

    with pytest.raises(QnsError, match=problem):
        asyncio.run(scenario())


def test_client_gives_up_when_the_peer_is_silent(tmp_path: Path) -> None:
    path = tmp_path / "a.admin"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        with pytest.raises(QnsError, match=r"not answered for 0.05 s"):
            call(path, "status", {}, silent_s=0.05)
