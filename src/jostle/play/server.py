"""The server of the bench: one page, its inputs and its stream of estimates, for one person on this machine.

Every address begins with a token that is drawn anew for each start, requests for another host or from another page are
refused, and nothing but the bench and the files of the page can be read. Models are asked one request at a time.
"""

import asyncio
import contextlib
import hmac
import importlib.resources
import json
import queue
import secrets
import threading
from collections.abc import AsyncIterator, Generator
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jostle.base.errors import JostleError, UsageError
from jostle.play.bench import MOST_BYTES, Bench, Update

_FILES = {"page.js": "text/javascript", "page.css": "text/css"}
_STRENGTHS = (0.0, 1_000.0)
_SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def make_token() -> str:
    """A word that nobody can guess."""
    return secrets.token_urlsafe(16)


def make_app(bench: Bench, token: str, hosts: tuple[str, ...]) -> Starlette:
    """The application.

    Arguments:
        bench: what is played with.
        token: with which every address begins.
        hosts: names, with ports, under which a browser may ask; another name may be a page elsewhere that points here.
    """
    answers = _Answers(bench)
    routes = [
        Route("/{token}/", answers.page),
        Route("/{token}/page.js", answers.file),
        Route("/{token}/page.css", answers.file),
        Route("/{token}/bench", answers.bench),
        Route("/{token}/inputs", answers.add, methods=["POST"]),
        Route("/{token}/inputs/{number}", answers.describe),
        Route("/{token}/shown/{number}", answers.shown),
        Route("/{token}/watch/{number}", answers.watch),
        Route("/{token}/search/{number}", answers.search),
    ]
    guard = Middleware(_Guard, token=token, hosts=hosts)
    return Starlette(routes=routes, middleware=[guard], exception_handlers={JostleError: _refused})


class _Guard:
    """Refuses requests without the token, for another host, or from another page; makes answers safe to show."""

    def __init__(self, app: ASGIApp, token: str, hosts: tuple[str, ...]) -> None:
        self.app, self.token, self.hosts = app, token, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(Request(scope))

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_SAFE)
            await send(message)

        answer = self.app if refusal is None else PlainTextResponse(refusal + "\n", status_code=403)
        await answer(scope, receive, safely)

    def _refusal(self, request: Request) -> str | None:
        """Why a request is refused; None if it is not."""
        origin = request.headers.get("origin")
        is_ours = origin is None or origin.removeprefix("http://") in self.hosts
        if request.headers.get("host") not in self.hosts or not is_ours:
            return "only this machine may ask"
        given = request.url.path.split("/")[1]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return "the address lacks its token: use the one that jostle play printed"
        return None


async def _refused(_: Request, error: Exception) -> Response:
    status = 400 if isinstance(error, UsageError) else 500
    return JSONResponse({"error": str(error)}, status_code=status)


class _Answers:
    """What is asked of the bench, answered; one thread at a time asks the models."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._lock = threading.Lock()

    async def page(self, _: Request) -> Response:
        return Response(_file("page.html"), media_type="text/html")

    async def file(self, request: Request) -> Response:
        name = request.url.path.rsplit("/", 1)[1]
        return Response(_file(name), media_type=_FILES[name])

    async def bench(self, _: Request) -> Response:
        bench = self._bench
        return JSONResponse(
            {
                "kind": bench.kind,
                "unit": bench.unit,
                "strength": bench.strength,
                "models": list(bench.models),
                "inputs": bench.names(),
            }
        )

    async def add(self, request: Request) -> Response:
        content = b""
        async for part in request.stream():
            content += part
            if len(content) > MOST_BYTES:
                raise UsageError(f"that is more than {MOST_BYTES:,} bytes")
        number = await asyncio.to_thread(self._locked, self._bench.add, content)
        return JSONResponse({"number": number})

    async def describe(self, request: Request) -> Response:
        found = await asyncio.to_thread(self._locked, self._bench.describe, request.path_params["number"])
        return JSONResponse(found)

    async def shown(self, request: Request) -> Response:
        return JSONResponse(self._bench.example(request.path_params["number"]).shown)

    async def search(self, request: Request) -> Response:
        token, strength = _token(request), _strength(request)
        if token is None:
            raise UsageError("choose one token first: the worst change of all of them takes long")
        number = request.path_params["number"]
        return JSONResponse(await asyncio.to_thread(self._locked, self._bench.search, number, token, strength))

    async def watch(self, request: Request) -> Response:
        number, token, strength = request.path_params["number"], _token(request), _strength(request)
        self._bench.example(number)
        updates = _in_thread(self._lock, lambda: self._bench.watch(number, token, strength))
        return StreamingResponse(_events(request, updates), media_type="text/event-stream")

    def _locked(self, work: Any, *given: Any) -> Any:
        with self._lock:
            return work(*given)


def _file(name: str) -> bytes:
    return (importlib.resources.files("jostle.play") / name).read_bytes()


def _token(request: Request) -> int | None:
    text = request.query_params.get("token", "all")
    if text == "all":
        return None
    if not text.isdecimal():
        raise UsageError(f"token={text} must be a number, or all")
    return int(text)


def _strength(request: Request) -> float:
    text = request.query_params.get("strength", "1")
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not _STRENGTHS[0] <= number <= _STRENGTHS[1]:
        raise UsageError(f"strength={text} must be a number from {_STRENGTHS[0]:g} to {_STRENGTHS[1]:g}")
    return number


_END = object()


def _in_thread(lock: threading.Lock, updates: Any) -> "_Watched":
    watched = _Watched()
    threading.Thread(target=_work, args=(lock, updates, watched), daemon=True).start()
    return watched


class _Watched:
    """Updates that a thread makes and a stream takes; two wait at most, so that nobody computes for nobody."""

    def __init__(self) -> None:
        self.updates: queue.Queue[Any] = queue.Queue(maxsize=2)
        self.is_over = threading.Event()

    def put(self, update: Any) -> bool:
        """Hand over an update; False if nobody watches any more."""
        while not self.is_over.is_set():
            with contextlib.suppress(queue.Full):
                self.updates.put(update, timeout=0.2)
                return True
        return False


def _work(lock: threading.Lock, make: Any, watched: _Watched) -> None:
    """Make updates until nobody watches; the lock is free between two of them, so that a new question need not wait."""
    try:
        with lock:
            updates: Generator[Update] = make()
        while True:
            with lock:
                update = next(updates, None)
            if update is None or not watched.put(update.to_dict()):
                break
        updates.close()
    except JostleError as error:
        watched.put({"error": str(error)})
    watched.put(_END)


async def _events(request: Request, watched: _Watched) -> AsyncIterator[str]:
    """Updates as server-sent events, until they end or the browser goes away."""
    try:
        while not await request.is_disconnected():
            try:
                update = await asyncio.to_thread(watched.updates.get, True, 0.2)
            except queue.Empty:
                continue
            if update is _END:
                yield "event: end\ndata: {}\n\n"
                break
            yield f"data: {json.dumps(update, allow_nan=False)}\n\n"
    finally:
        watched.is_over.set()
