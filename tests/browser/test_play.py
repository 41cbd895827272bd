"""The bench in a real browser, at the width of a desk and of a phone."""

import io
import re
import socket
import threading

import pytest
import torch
import uvicorn
from PIL import Image

from jostle.data import Dataset
from jostle.play.kinds import make_bench
from jostle.play.server import make_app, make_token

EVIL = "<script>alert('x')</script><img src=x onerror=\"alert(1)\">"


class Corner(torch.nn.Module):
    """Class 1 where the first patch is bright."""

    def __init__(self, bound):
        super().__init__()
        self.bound = bound

    def forward(self, images):
        above = images[:, 0, :2, :2].sum(dim=(1, 2)) - self.bound + 1e-6 * images.sum(dim=(1, 2, 3))
        return torch.stack([-above, above], dim=1)


@pytest.fixture
def address(served):
    return served[0]


@pytest.fixture(scope="module")
def served():
    """The address of a bench of two models on this machine, and the bench."""
    images = torch.zeros(3, 1, 8, 8)
    images[1] = 1.0
    dataset = Dataset("x", images, torch.tensor([0, 1, 0]), classes=2)
    bench = make_bench({f"near {EVIL}": Corner(1.0), "far": Corner(1000.0)}, dataset, patch=2)
    bench.strength = 1.0
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind(("127.0.0.1", 0))
    host = f"127.0.0.1:{listening.getsockname()[1]}"
    token = make_token()
    config = uvicorn.Config(make_app(bench, token, (host,)), log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://{host}/{token}/", bench
    server.should_exit = True
    thread.join(timeout=10)


def finish(page):
    page.locator("#said", has_text="Finished").wait_for(timeout=240_000)


def numbers(page, model):
    """The rate and the ends of its interval as they are shown, in percent."""
    text = page.locator(".model").nth(model).locator(".flips").inner_text()
    return [float(number) for number in re.findall(r"([\d.]+) %", text)]


@pytest.mark.parametrize(("device", "dark"), [("desktop", False), ("phone", True)], ids=["desktop", "phone"])
def test_a_press_streams_the_estimates_of_the_bench_without_a_jump(served, opened, looked_at, device, dark):
    address, bench = served
    page = opened(address, device, dark)
    page.wait_for_selector(".grid button")
    finish(page)
    page.evaluate("window.shifts.length = 0")
    page.locator(".model").first.locator(".grid button").first.click()
    page.locator("body[data-waited]").wait_for()
    finish(page)
    *_, end = bench.watch("0", 0, 1.0)
    rate = next(iter(end.rates.values()))
    shown = numbers(page, 0)
    assert shown == pytest.approx([100 * part for part in rate], abs=0.51)
    assert "most to 1" in page.locator(".flips").first.inner_text()
    assert page.evaluate("window.shifts.reduce((a, b) => a + b, 0)") == 0  # nothing jumps while numbers stream
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.screenshot(path=looked_at("bench"), full_page=True)


def test_the_map_fills_in_and_has_a_scale(address, opened):
    page = opened(address)
    finish(page)
    first = page.locator(".model").first.locator(".grid button")
    assert "flips in" in first.first.get_attribute("aria-label")
    shares = first.evaluate_all("(all) => all.map((one) => Number(one.style.getPropertyValue('--share')))")
    assert shares[0] == max(shares) == 1
    assert set(shares[1:]) == {0}
    assert "flips in" in page.locator("#darkest").inner_text()


def test_everything_can_be_reached_by_keys(address, opened):
    page = opened(address)
    finish(page)
    page.locator("#inputs button").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator("#inputs button:nth-child(2)[aria-pressed='true']").wait_for()
    page.locator("#strength").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#strength-said").inner_text() == "1.1"
    stops = page.locator(".grid").first.locator("button[tabindex='0']")
    assert stops.count() == 1  # one stop of the tab key for all patches
    stops.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    assert page.locator("[data-token='5']").first.get_attribute("aria-pressed") == "true"
    assert page.locator("#all").get_attribute("aria-pressed") == "false"
    finish(page)
    assert page.locator("#aloud").inner_text().startswith("After ")
    page.locator("#worst").focus()
    page.keyboard.press("Enter")
    page.locator(".worst", has_text="worst change").first.wait_for(timeout=240_000)


def test_the_worst_change_is_shown(address, opened):
    page = opened(address)
    finish(page)
    page.locator("[data-token='0']").first.click()
    page.locator("#worst").click()
    page.locator(".worst", has_text="flips to 1").first.wait_for(timeout=240_000)
    assert "no flip was found" in page.locator(".worst").nth(1).inner_text()
    assert page.locator(".worst img").first.get_attribute("src").startswith("data:image/png")


def test_an_image_of_ones_own_and_a_file_that_is_none(address, opened):
    page = opened(address)
    finish(page)
    held = io.BytesIO()
    Image.new("L", (20, 20), 255).save(held, format="png")
    page.set_input_files("#file", {"name": f"{EVIL}.png", "mimeType": "image/png", "buffer": held.getvalue()})
    page.locator("#inputs button:nth-child(1)[aria-pressed='true'][title='your image']").wait_for()
    assert "predicts 1" in page.locator(".predicts").first.inner_text()


def test_what_people_name_stays_text(address, opened):
    page = opened(address)
    page.wait_for_selector(".model")
    assert page.locator("h3").first.inner_text() == f"near {EVIL}"
    assert page.locator("script").count() == 1
    assert page.locator("img[onerror]").count() == 0
