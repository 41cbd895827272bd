"""A browser for tests: Debian's chromium, driven by playwright, which can reach this machine alone."""

import shutil
import tempfile
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
WIDTHS = {"desktop": 1280, "phone": 390}


@pytest.fixture(scope="session")
def browser():
    """Chromium with a new, empty folder of its own; skips where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not Path(CHROMIUM).is_file():
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as tool:
        made = tool.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, headless=True)
        yield made
        made.close()


@pytest.fixture
def opened(browser):
    """``opened(address, device, dark)`` is a page; at the end nothing may have failed or been asked of another host."""
    contexts, asked, wrong = [], [], []

    def open_page(address, device="desktop", dark=False):
        context = browser.new_context(
            viewport={"width": WIDTHS[device], "height": 900}, color_scheme="dark" if dark else "light"
        )
        context.set_default_timeout(120_000)  # milliseconds: a busy machine is slow, and no failure
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: wrong.append(f"a script ran: {dialog.message}") or dialog.dismiss())
        page.add_init_script(
            "window.shifts = []; new PerformanceObserver((list) => { for (const one of list.getEntries()) if "
            "(!one.hadRecentInput) window.shifts.push(one.value); }).observe({type: 'layout-shift', buffered: true});"
        )
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [url for url in asked if not url.startswith(("file://", "data:", "http://127.0.0.1:"))] == []
    assert wrong == []


@pytest.fixture
def looked_at(request):
    """Where screenshots go: ``--basetemp`` or the folder of temporary files, one file a name."""
    folder = Path(tempfile.gettempdir()) / "jostle-screenshots"
    folder.mkdir(exist_ok=True)
    return lambda name: str(folder / f"{request.node.name.replace('/', '-')}-{name}.png")
