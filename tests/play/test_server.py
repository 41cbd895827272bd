"""The server of the bench: who may ask, what is answered, and that texts stay texts."""

import json

import pytest
import torch
from starlette.testclient import TestClient

from jostle.data import Dataset
from jostle.play.kinds import make_bench
from jostle.play.server import make_app, make_token

HOST = "127.0.0.1:8000"


@pytest.fixture
def token():
    return make_token()


@pytest.fixture
def client(token, monkeypatch):
    monkeypatch.undo()  # the client of starlette speaks to the application in this process, without a network
    images = torch.randn(3, 1, 4, 4)
    dataset = Dataset("x", images, torch.tensor([0, 1, 0]), classes=2)
    bench = make_bench({"<script>": lambda x: x.flatten(1)[:, :2]}, dataset, patch=2)
    app = make_app(bench, token, (HOST,))
    return TestClient(app, base_url=f"http://{HOST}")


def test_without_the_token_nothing_is_answered(client, token):
    for path in ("/", "/bench", f"/{token}x/bench", "/x/", f"/x/{token}/bench"):
        assert client.get(path).status_code == 403
    assert client.get(f"/{token}/bench").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1:9"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"https://{HOST}.evil.example"},
    ],
)
def test_other_hosts_and_pages_are_refused(client, token, headers):
    assert client.get(f"/{token}/bench", headers=headers).status_code == 403
    assert client.post(f"/{token}/inputs", content=b"x", headers=headers).status_code == 403


def test_the_own_page_may_ask(client, token):
    assert client.get(f"/{token}/bench", headers={"origin": f"http://{HOST}"}).status_code == 200


def test_only_the_files_of_the_page_are_served(client, token):
    page = client.get(f"/{token}/")
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "http" not in page.text.replace("http-equiv", "")  # it loads nothing from elsewhere
    for name, kind in (("page.js", "text/javascript"), ("page.css", "text/css")):
        assert client.get(f"/{token}/{name}").headers["content-type"].startswith(kind)
    for name in ("server.py", "../bench.py", "..%2fbench.py", "page.js/../server.py", "%2e%2e/pyproject.toml"):
        assert client.get(f"/{token}/{name}").status_code in (403, 404)


def test_inputs_and_predictions(client, token):
    bench = client.get(f"/{token}/bench").json()
    assert bench["models"] == ["<script>"]
    found = client.get(f"/{token}/inputs/0").json()
    assert set(found["models"]["<script>"]) == {"class", "share", "margin", "second"}
    assert client.get(f"/{token}/inputs/99").status_code == 400


def test_the_stream_ends_and_is_what_the_bench_says(client, token):
    with client.stream("GET", f"/{token}/watch/0?token=1&strength=0.5") as answer:
        lines = [line for line in answer.iter_lines() if line]
    assert lines[-2:] == ["event: end", "data: {}"]
    updates = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    draws = [update["draws"] for update in updates]
    assert draws == sorted(draws)
    assert draws[-1] >= 6000
    for update in updates:
        rate = update["rates"]["<script>"]
        assert 0 <= rate["low"] <= rate["value"] <= rate["high"] <= 1


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("token=x", "token=x must be"),
        ("token=-1", "token=-1 must be"),
        ("strength=nan", "strength=nan must be"),
        ("strength=-1", "strength=-1 must be"),
        ("strength=1e99", "strength=1e99 must be"),
        ("strength=", "must be a number"),
    ],
)
def test_wrong_numbers_are_one_line(client, token, query, said):
    answer = client.get(f"/{token}/watch/0?{query}")
    assert answer.status_code == 400
    assert said in answer.json()["error"]


def test_a_token_that_is_not_there_is_said_in_the_stream(client, token):
    answer = client.get(f"/{token}/watch/0?token=77")
    assert "token 77 cannot be jostled" in answer.text


def test_large_uploads_are_refused(client, token):
    answer = client.post(f"/{token}/inputs", content=b"x" * 9_000_000)
    assert answer.status_code == 400
    assert "bytes" in answer.json()["error"]


def test_tokens_differ():
    assert len({make_token() for _ in range(100)}) == 100
