"""The server of the page: it listens on the loopback interface and answers only pages of this machine.

GET / and the files it asks for; POST /solve with a request as JSON (see solve.py), answered as JSON.
"""

from __future__ import annotations

import io
import json
import re
import socket
import socketserver
import sys
import threading
import time
import traceback
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, NamedTuple, NoReturn

from rankwise_lab.explore.solve import BadRequestError, solve

LOOPBACK = "127.0.0.1"
LARGEST_BODY = 64 * 1024
# Seconds that a client may be silent within a request.
PATIENCE = 10.0
# Seconds that a request may take to arrive, from its first byte to its last.
DEADLINE = 20.0
# Connections at a time; a browser opens about six.
MOST_CONNECTIONS = 64
# How much of a refused body is read and dropped, so that the client can read the answer.
_DRAINED, _DRAINED_SECONDS = 1 << 20, 0.5

_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_SCRIPTS = ("app.js", "layout.js", "model.js", "rankings.js", "recursion.js", "remote.js", "svg.js")
_FILES = ("index.html", "style.css", "dark.css", *_SCRIPTS)
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


# The answer if there are too many connections.
_TOO_MANY = b'{"error": "too many connections at a time; close some, or try again later"}'
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Retry-After: %d\r\nContent-Length: %d\r\n\r\n%b" % (DEADLINE, len(_TOO_MANY), _TOO_MANY)
)


class _RefusedError(Exception):
    """An answer other than 200: the status, what to say, and the methods allowed."""

    def __init__(self, status: HTTPStatus, message: str, allow: str | None = None) -> None:
        super().__init__(message)
        self.status, self.allow = status, allow


class _TooSlowError(Exception):
    """A request that did not arrive in time."""


class _File(NamedTuple):
    kind: str
    content: bytes


class Explorer(ThreadingHTTPServer):
    """A server on a free port of 127.0.0.1, or on the given port, with one thread per connection."""

    daemon_threads = True
    request_queue_size = 128
    # On Windows a second server could otherwise take the port of the first.
    allow_reuse_address = sys.platform != "win32"

    def __init__(self, port: int = 0, most_connections: int = MOST_CONNECTIONS) -> None:
        self._places = threading.BoundedSemaphore(most_connections)
        self._held: set[Any] = set()
        self.pages = {f"/{name}": _read(name) for name in _FILES}
        self.pages["/"] = self.pages["/index.html"]
        super().__init__((LOOPBACK, port), _Handler)
        port = self.server_address[1]
        names = (LOOPBACK, "localhost", "[::1]")
        self.hosts = {f"{name}:{port}" for name in names} | ({*names} if port == 80 else set())
        self.address = f"http://{LOOPBACK}:{port}/"

    def server_bind(self) -> None:
        """Bind without looking up the name of this machine, which can be slow without a network."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a new thread, if there are not too many."""
        if self._places.acquire(blocking=False):
            self._held.add(request)
            try:
                super().process_request(request, client_address)
            except BaseException:
                self._leave(request)
                raise
            return
        with suppress(OSError):
            request.settimeout(0.0)  # do not wait for this client
            request.sendall(_FULL)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, then make room for another connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def _leave(self, request: Any) -> None:
        """Make room for another connection, once: Ctrl-C may come when the thread has just been started."""
        with suppress(KeyError):
            self._held.remove(request)
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect; print any other error."""
        if not isinstance(sys.exc_info()[1], OSError):
            traceback.print_exc()


def _read(name: str) -> _File:
    kind = _KINDS[name.rpartition(".")[2]]
    return _File(f"{kind}; charset=utf-8", files("rankwise_lab.explore").joinpath(name).read_bytes())


class _Received(io.RawIOBase):
    """What a client sends, with time limits for the first byte of a request, for the next one, and for all."""

    def __init__(self, connection: socket.socket, patience: float, seconds: float) -> None:
        self._connection, self._patience, self._seconds = connection, patience, seconds
        self._deadline: float | None = None

    def begin(self, seconds: float | None = None) -> None:
        """Wait for a new request; or, if seconds are given, wait so long for the rest of one."""
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._patience
        if self._deadline is not None:
            left = min(left, self._deadline - time.monotonic())
            if left <= 0.0:
                raise _TooSlowError
        self._connection.settimeout(left)
        try:
            n = self._connection.recv_into(buffer)
        except TimeoutError:
            if self._deadline is None:  # nothing was asked
                raise
            raise _TooSlowError from None
        finally:
            self._connection.settimeout(self._patience)  # for answers
        if self._deadline is None:
            self.begin(self._seconds)
        return n


class _Handler(BaseHTTPRequestHandler):
    """Checks a request and answers it."""

    server: Explorer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "rankwise", ""
    timeout = PATIENCE
    deadline = DEADLINE

    def setup(self) -> None:
        """Read from a stream with time limits."""
        super().setup()
        self.rfile.close()
        self._received = _Received(self.connection, self.timeout, self.deadline)
        self.rfile = io.BufferedReader(self._received)

    def handle_one_request(self) -> None:
        """Answer a request, if it arrives in time."""
        self._received.begin()
        try:
            super().handle_one_request()
        except _TooSlowError:
            self.requestline, self.command = "", ""
            self._refuse(_RefusedError(HTTPStatus.REQUEST_TIMEOUT, "the request did not arrive in time"))

    def do_GET(self) -> None:
        self._attempt(self._page)

    def do_HEAD(self) -> None:
        self._attempt(self._page)

    def do_POST(self) -> None:
        self._attempt(self._solve)

    def _attempt(self, answer: Any) -> None:
        try:
            self._check_origin()
            status, found = HTTPStatus.OK, answer()
        except _RefusedError as refused:
            self._refuse(refused)
            return
        except BadRequestError as error:
            status, found = HTTPStatus.BAD_REQUEST, _as_json({"error": str(error)})
        except Exception:
            traceback.print_exc()
            self._refuse(_RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, "the server failed; see its terminal"))
            return
        self._send(status, found)

    def _check_origin(self) -> None:
        """Refuse requests of other pages: through another host name for this address, or from another origin."""
        hosts, origins = self.headers.get_all("Host", []), self.headers.get_all("Origin", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            raise _RefusedError(HTTPStatus.FORBIDDEN, f"the Host is not this server's; open {self.server.address}")
        if any(origin.lower() not in {f"http://{host}" for host in self.server.hosts} for origin in origins):
            raise _RefusedError(HTTPStatus.FORBIDDEN, f"the Origin is another page; open {self.server.address}")

    def _page(self) -> _File:
        path = self.path.partition("?")[0]
        if path == "/solve":
            raise _RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "/solve takes POST", "POST")
        if path not in self.server.pages:
            raise _RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here; the page is /")
        return self.server.pages[path]

    def _solve(self) -> _File:
        path = self.path.partition("?")[0]
        if path in self.server.pages:
            raise _RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes GET; POST goes to /solve", "GET, HEAD")
        if path != "/solve":
            raise _RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here; POST goes to /solve")
        return _as_json(solve(_parse(self._body())))

    def _body(self) -> bytes:
        if self.headers.get_content_type() != "application/json":
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must be application/json")
        lengths = self.headers.get_all("Content-Length", [])
        if not lengths or "Transfer-Encoding" in self.headers:
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "send the body's Content-Length, and no Transfer-Encoding")
        if len(lengths) > 1 or not re.fullmatch(r"[0-9]{1,18}", lengths[0]):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "Content-Length must be one whole number")
        length = int(lengths[0])
        if length > LARGEST_BODY:
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"send at most {LARGEST_BODY} bytes")
        try:
            body = self.rfile.read(length)
        except _TooSlowError:
            raise _RefusedError(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time") from None
        if len(body) < length:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, f"the body ended at {len(body)} of {length} bytes")
        return body

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is not HTTP, and unknown methods."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._refuse(_RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "use GET, HEAD or POST", "GET, HEAD, POST"))
        else:
            self._refuse(_RefusedError(HTTPStatus(code), f"this is not a request: {HTTPStatus(code).phrase}"))

    def _refuse(self, refused: _RefusedError) -> None:
        """Answer and close the connection, so that the rest of it is not read as a request."""
        self.close_connection = True
        self.request_version = self.protocol_version  # even if it is not HTTP; otherwise there would be no headers
        self._send(refused.status, _as_json({"error": str(refused)}), refused.allow)
        self._received.begin(_DRAINED_SECONDS)
        left = _DRAINED
        with suppress(OSError, _TooSlowError):
            while left > 0 and (chunk := self.rfile.read1(min(left, 1 << 16))):
                left -= len(chunk)

    def _send(self, status: HTTPStatus, answer: _File, allow: str | None = None) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.content)))
        if allow is not None:
            self.send_header("Allow", allow)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadRequestError):
            raise
        where = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BadRequestError(f"the body is not JSON{where}; send an object with scores and relevant") from None


def _refuse_constant(name: str) -> NoReturn:
    raise BadRequestError(f"{name} is not finite; send finite numbers")


def _as_json(document: dict[str, Any]) -> _File:
    return _File("application/json", json.dumps(document, allow_nan=False).encode())
