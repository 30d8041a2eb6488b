"""The interactive page's server answers only this machine, refuses what it must, and stays up."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from importlib.resources import files
from typing import Any, NoReturn

import pytest
from rankwise_lab.explore import server as server_module
from rankwise_lab.explore.server import LARGEST_BODY, Explorer
from rankwise_lab.explore.solve import solve

from rankwise.cli.main import main

EXAMPLE = {"scores": [2.0, 1.0, 0.5, 0.0], "relevant": [False, True, False, True]}


Answer = tuple[int, http.client.HTTPMessage, bytes]


def ask(server: Explorer, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        usual = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, path, content, {**usual, **headers})
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


def say(server: Explorer, message: bytes, *, end: bool = False) -> tuple[int, bytes]:
    """Send bytes, and what comes back: the status and all of it."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as connection:
        connection.sendall(message)
        if end:
            connection.shutdown(socket.SHUT_WR)
        reply = b""
        while chunk := connection.recv(1 << 16):
            reply += chunk
    return int(reply.split()[1]), reply


def test_the_server_solves(server: Explorer) -> None:
    status, headers, content = ask(server, "POST", "/solve", EXAMPLE)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(content) == json.loads(json.dumps(solve(EXAMPLE)))


FILES = {"/": "text/html", "/style.css": "text/css"} | {
    f"/{name}.js": "text/javascript" for name in ("app", "model", "rankings", "recursion", "svg")
}


@pytest.mark.parametrize("path", FILES)
def test_every_file_is_served_with_strict_headers_whole_and_to_head(server: Explorer, path: str) -> None:
    status, headers, content = ask(server, "GET", path)
    assert status == 200
    assert content == files("rankwise_lab.explore").joinpath(path[1:] or "index.html").read_bytes()
    assert headers["Content-Type"] == f"{FILES[path]}; charset=utf-8"
    assert headers["Content-Security-Policy"].startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:;"
    )
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Python" not in headers["Server"]
    head = ask(server, "HEAD", path)
    assert (head[0], head[1]["Content-Length"], head[2]) == (200, str(len(content)), b"")


def test_the_files_name_no_other_place_and_evaluate_no_text() -> None:
    for path in FILES:
        text = files("rankwise_lab.explore").joinpath(path[1:] or "index.html").read_text(encoding="utf-8")
        places = set(re.findall(r"(?:https?:)?//[\w.]+\.\w+[^\s\"']*", text))
        assert places <= {"http://www.w3.org/2000/svg"}, path
        assert not re.search(r"\beval\b|innerHTML|new Function|\sstyle=|\son\w+=", text), path


def test_every_file_of_the_page_is_served(server: Explorer) -> None:
    there = {entry.name for entry in files("rankwise_lab.explore").iterdir() if not entry.name.endswith((".py", "__"))}
    there -= {"local.js", "embed.js"}  # which only the page without a server has
    assert {f"/{name}" for name in there} <= set(server.pages)


HOST = b"Host: 127.0.0.1:%d\r\n"
TYPE = b"Content-Type: application/json\r\n"
POST = b"POST /solve HTTP/1.1\r\n" + HOST + TYPE
REFUSED: dict[str, tuple[int, bytes]] = {
    "foreign host": (403, b"GET / HTTP/1.1\r\nHost: evil.example:%d\r\n\r\n"),
    "our address at another port": (403, b"GET / HTTP/1.1\r\nHost: 127.0.0.1:1%d\r\n\r\n"),
    "host without a port": (403, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
    "no host": (403, b"GET / HTTP/1.1\r\n\r\n"),
    "no host in HTTP/1.0": (403, b"GET / HTTP/1.0\r\n\r\n"),
    "two hosts": (403, b"GET / HTTP/1.1\r\n" + HOST + b"Host: evil.example\r\n\r\n"),
    "foreign origin": (403, b"POST /solve HTTP/1.1\r\n" + HOST + b"Origin: http://evil.example\r\n\r\n"),
    "origin null": (403, b"GET / HTTP/1.1\r\n" + HOST + b"Origin: null\r\n\r\n"),
    "origin at another port": (403, b"GET / HTTP/1.1\r\n" + HOST + b"Origin: http://127.0.0.1:1\r\n\r\n"),
    "put": (405, b"PUT / HTTP/1.1\r\n" + HOST + b"\r\n"),
    "options": (405, b"OPTIONS /solve HTTP/1.1\r\n" + HOST + b"\r\n"),
    "a method of no name": (405, b"BREW / HTTP/1.1\r\n" + HOST + b"\r\n"),
    "get of solve": (405, b"GET /solve HTTP/1.1\r\n" + HOST + b"\r\n"),
    "post of the page": (405, b"POST / HTTP/1.1\r\n" + HOST + TYPE + b"Content-Length: 0\r\n\r\n"),
    "unknown path": (404, b"GET /nothing HTTP/1.1\r\n" + HOST + b"\r\n"),
    "a path upwards": (404, b"GET /../solve.py HTTP/1.1\r\n" + HOST + b"\r\n"),
    "a module": (404, b"GET /solve.py HTTP/1.1\r\n" + HOST + b"\r\n"),
    "post to an unknown path": (404, b"POST /nothing HTTP/1.1\r\n" + HOST + TYPE + b"Content-Length: 0\r\n\r\n"),
    "no content type": (415, b"POST /solve HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n{}"),
    "a form": (415, b"POST /solve HTTP/1.1\r\n" + HOST + b"Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}"),
    "no length": (411, POST + b"\r\n{}"),
    "chunks": (
        411,
        POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ),
    "length -1": (400, POST + b"Content-Length: -1\r\n\r\n{}"),
    "length a word": (400, POST + b"Content-Length: two\r\n\r\n{}"),
    "two lengths": (
        400,
        POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    ),
    "too long": (413, POST + b"Content-Length: 65537\r\n\r\n" + b" " * 65537),
    "very long": (413, POST + b"Content-Length: 999999999999\r\n\r\n"),
    "shorter than its length": (400, POST + b"Content-Length: 9\r\n\r\n{}"),
    "a long address": (414, b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n" + HOST + b"\r\n"),
    "a long header": (431, b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 70000 + b"\r\n\r\n"),
    "many headers": (431, b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n" * 200 + b"\r\n"),
    "HTTP/2.0": (505, b"GET / HTTP/2.0\r\n" + HOST + b"\r\n"),
    "no HTTP": (400, b"\x16\x03\x01\x02\x00 hello there you\r\n\r\n"),
}


@pytest.mark.parametrize(("status", "message"), REFUSED.values(), ids=REFUSED)
def test_what_must_be_refused_is_and_the_server_still_answers(server: Explorer, status: int, message: bytes) -> None:
    found, reply = say(server, message.replace(b"%d", str(server.server_port).encode()), end=True)
    assert found == status
    head, _, body = reply.partition(b"\r\n\r\n")
    assert json.loads(body)["error"]
    assert b"Traceback" not in reply
    assert b"nosniff" in head
    assert (b"\r\nAllow: " in head) == (status == 405)
    assert ask(server, "POST", "/solve", EXAMPLE)[0] == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost", "[::1]"])
def test_the_names_of_this_machine_are_hosts_and_origins(server: Explorer, host: str) -> None:
    name = f"{host}:{server.server_port}"
    assert ask(server, "POST", "/solve", EXAMPLE, Host=name, Origin=f"http://{name}")[0] == 200


BODIES = {
    "empty": (b"", "the body is not JSON at line 1, column 1; send an object"),
    "cut off": (b'{"scores": [1,', "the body is not JSON at line 1, column 15"),
    "not text": (b"\xff\xfe\x00", "the body is not JSON"),
    "NaN": (b'{"scores": [NaN], "relevant": [true]}', "NaN is not finite; send finite numbers"),
    "Infinity": (b'{"scores": [-Infinity], "relevant": [true]}', "-Infinity is not finite"),
    "1e999": (b'{"scores": [0, 1e999], "relevant": [true, false]}', "scores[1] is not finite"),
    "many digits": (b"1" * 5000, "the body is not JSON"),
    "deep": (b"[" * LARGEST_BODY, "the body is not JSON"),
    "wrong": (b'{"scores": [1, "2"], "relevant": [true, false]}', "scores[1] is a string; send a number"),
}


@pytest.mark.parametrize(("body", "message"), BODIES.values(), ids=BODIES)
def test_a_body_that_is_no_request_is_answered_by_its_fault(server: Explorer, body: bytes, message: str) -> None:
    status, _, content = ask(server, "POST", "/solve", body)
    assert status == 400
    assert message in json.loads(content)["error"]
    assert ask(server, "POST", "/solve", EXAMPLE)[0] == 200


def test_a_connection_is_kept_for_further_requests(server: Explorer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        for body in (EXAMPLE, {}, EXAMPLE):  # a bad request in between does no harm
            connection.request("POST", "/solve", json.dumps(body), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            assert reply.status == (200 if body else 400)
            reply.read()
    finally:
        connection.close()


def test_slow_clients_do_not_keep_others_waiting(server: Explorer) -> None:
    head = POST.replace(b"%d", str(server.server_port).encode()) + b"Content-Length: 9\r\n"
    slow = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(20)]
    try:
        for number, connection in enumerate(slow):
            connection.sendall(head[: 10 + 6 * number] if number < 15 else head + b"\r\n{")
        began = time.perf_counter()
        assert ask(server, "POST", "/solve", EXAMPLE)[0] == 200
        assert time.perf_counter() - began < 2.0
    finally:
        for connection in slow:
            connection.close()


def test_a_client_that_falls_silent_is_let_go(server: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1.0 <= server_module._Handler.timeout <= 30.0
    monkeypatch.setattr(server_module._Handler, "timeout", 0.1)
    head = POST.replace(b"%d", str(server.server_port).encode()) + b"Content-Length: 9\r\n\r\n"
    status, reply = say(server, head + b"{}")
    assert status == 408
    assert b"the body did not arrive in time" in reply
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as silent:
        assert silent.recv(1) == b""


def test_a_failure_of_the_server_is_told_in_its_terminal_only(
    server: Explorer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(request: Any) -> NoReturn:
        raise RuntimeError("a secret")

    monkeypatch.setattr(server_module, "solve", fail)
    status, _, content = ask(server, "POST", "/solve", EXAMPLE)
    assert status == 500
    assert b"secret" not in content
    assert b"Traceback" not in content
    assert "a secret" in capsys.readouterr().err
    monkeypatch.undo()
    assert ask(server, "POST", "/solve", EXAMPLE)[0] == 200


def test_a_place_is_left_once_though_ctrl_c_comes_as_its_thread_starts(
    server: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = socketserver.ThreadingMixIn.process_request

    def interrupted(self: Any, request: Any, client_address: Any) -> None:
        started(self, request, client_address)
        raise KeyboardInterrupt

    request, client = socket.socketpair()
    with request, client:
        monkeypatch.setattr(socketserver.ThreadingMixIn, "process_request", interrupted)
        with pytest.raises(KeyboardInterrupt):  # and no word of a semaphore
            server.process_request(request, ("127.0.0.1", 1))
    monkeypatch.undo()
    for _ in range(100):  # its thread leaves no second place
        if not server._held:
            break
        time.sleep(0.01)
    assert ask(server, "GET", "/")[0] == 200


def test_clients_that_go_away_are_not_told_of(server: Explorer, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.server_port)) as gone:
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closing resets
            gone.sendall(f"GET /app.js HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
    assert ask(server, "GET", "/")[0] == 200
    assert capsys.readouterr().err == ""


def other_addresses() -> list[str]:
    """Addresses of this machine other than 127.0.0.1."""
    found = ["127.0.0.2"] if sys.platform == "linux" else []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses a way
            found.append(probe.getsockname()[0])
        except OSError:
            pass
    return found


def test_only_the_loopback_address_is_bound(server: Explorer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    for address in other_addresses():
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address, server.server_port), timeout=2)


@pytest.mark.kill
def test_the_command_prints_the_address_serves_and_ends_by_ctrl_c() -> None:
    command = [sys.executable, "-m", "rankwise.cli.main", "explore", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/ \(press Ctrl-C to stop\)\n", line)
            assert found
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=10)
            connection.request("GET", "/")
            assert connection.getresponse().read().startswith(b"<!DOCTYPE html>")
            connection.close()
            os.kill(process.pid, signal.SIGINT)
            rest, said = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, rest) == (0, "stopped\n")
    assert "Traceback" not in said


def test_the_command_opens_a_browser_unless_told_not_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(self: Explorer) -> None:
        raise KeyboardInterrupt

    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(Explorer, "serve_forever", interrupt)
    assert main(["explore", "--no-browser"]) == 0
    assert opened == []
    assert main(["explore"]) == 0
    assert capsys.readouterr().out.split()[-6] == opened[0]


def test_a_port_that_is_taken_or_none_is_refused_in_one_line(
    server: Explorer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", "--no-browser", "--port", str(server.server_port)]) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(rf"rankwise: --port {server.server_port}: .*; choose another port, or leave --port out\n", said)
    for port in ("-1", "65536", "http"):
        with pytest.raises(SystemExit, match="2"):
            main(["explore", "--port", port])
        assert "is not a port; use a whole number from 0 to 65535" in capsys.readouterr().err


def drip(server: Explorer, start: bytes, unit: bytes) -> bytes:
    """Send a start, then a unit at a time, until the server has enough of it: what it says."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=0.02) as connection:
        connection.sendall(start)
        reply = b""
        for _ in range(3000):  # at most a minute
            try:
                chunk = connection.recv(1 << 16)
                reply += chunk
                if not chunk:
                    return reply
            except TimeoutError:
                pass
            except ConnectionResetError:
                return reply
            try:
                connection.sendall(unit)
            except OSError:
                continue
    pytest.fail("the server still listens")


DRIPPING = {
    "a request line": (b"GET /", b"a"),
    "headers": (b"GET / HTTP/1.1\r\n" + HOST, b"X"),
    "many headers": (b"GET / HTTP/1.1\r\n" + HOST, b"X: a\r\n"),
    "a body": (POST + b"Content-Length: 60000\r\n\r\n", b" "),
}


@pytest.mark.parametrize("kind", DRIPPING)
def test_a_request_that_drips_is_ended_by_its_deadline(
    kind: str, server: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 5.0 <= server_module._Handler.deadline <= 60.0
    monkeypatch.setattr(server_module._Handler, "deadline", 0.3)  # a drop comes every 0.02 s, far within its patience
    start, unit = DRIPPING[kind]
    reply = drip(server, start.replace(b"%d", str(server.server_port).encode()), unit)
    assert reply.split()[1] == b"408" or (kind == "many headers" and reply.split()[1] == b"431")
    assert b"did not arrive in time" in reply or kind == "many headers"
    monkeypatch.undo()
    assert ask(server, "POST", "/solve", EXAMPLE)[0] == 200


def test_a_client_that_drips_after_it_was_refused_is_let_go(server: Explorer) -> None:
    reply = drip(server, b"PUT / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.server_port, b"a")
    assert reply.split()[1] == b"405"


def test_the_deadline_is_a_requests_not_a_connections(server: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module._Handler, "deadline", 2.0)
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        for k in range(4):
            time.sleep(0.7 if k else 0.0)
            connection.request("POST", "/solve", json.dumps(EXAMPLE), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            assert reply.status == 200
            reply.read()
    finally:
        connection.close()


def answered(server: Explorer) -> bool:
    """Whether the page is answered, if it is asked for until a place is free."""
    for _ in range(1000):
        try:
            if ask(server, "GET", "/")[0] == 200:
                return True
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.01)
    return False


def test_one_connection_too_many_is_told_so_and_places_come_back() -> None:
    with Explorer(most_connections=3) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        held = [socket.create_connection(("127.0.0.1", server.server_port), timeout=10) for _ in range(3)]
        try:
            status, reply = say(server, b"")
            assert status == 503
            head, _, body = reply.partition(b"\r\n\r\n")
            assert json.loads(body)["error"].startswith("too many connections at a time")
            assert f"Content-Length: {len(body)}".encode() in head
            held.pop().close()
            assert all(answered(server) for _ in range(5))
        finally:
            for connection in held:
                connection.close()
            server.shutdown()
            thread.join()
