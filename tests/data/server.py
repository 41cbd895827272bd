"""A web server on this machine, so that downloads are tested as they happen."""

import contextlib
import socket
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest

_CONNECT = socket.socket.connect  # before the suite forbids it


class Server:
    """Answers by path: ``answers["/a.bin"]`` is bytes, or a function of the request handler."""

    def __init__(self):
        self.answers, self.requests, server = {}, [], self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append(self)
                answer = server.answers.get(unquote(self.path))
                if answer is None:
                    self.send_error(404)
                elif callable(answer):
                    answer(self)
                else:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def url(self, path):
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def publish(self, folder):
        """Serve every file of a folder."""
        for path in folder.iterdir():
            self.answers[f"/{path.name}"] = lambda handler, path=path: _send(handler, path)

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _send(handler, path):
    if not path.is_file():
        handler.send_error(404)
        return
    handler.send_response(200)
    handler.send_header("Content-Length", str(path.stat().st_size))
    handler.end_headers()
    handler.wfile.write(path.read_bytes())


@pytest.fixture
def server(monkeypatch):
    """A server on this machine; everything else stays out of reach."""

    def connect(own, address):
        if address[0] != "127.0.0.1":
            raise OSError(101, "Network is unreachable")
        return _CONNECT(own, address)

    monkeypatch.setattr(socket.socket, "connect", connect)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with contextlib.closing(contextlib.ExitStack()) as stack:
        made = Server()
        stack.callback(made.stop)
        yield made


def publish_dataset(monkeypatch, server, source, folder):
    """Let the official files of ``source`` be those in ``folder``, served by ``server``."""
    server.publish(folder)
    files = tuple(replace(file, urls=(server.url(f"/{file.name}"),)) for file in source.files)
    monkeypatch.setattr(type(source), "files", files)
