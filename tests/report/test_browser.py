"""The report in a real browser: headless Chromium, driven by Playwright. Run with ``make test-browser``."""

import os
import shutil

import pytest

from dualfree.cli.app import run

pytestmark = [pytest.mark.slow, pytest.mark.browser]

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("there is no Chromium; install Debian's package chromium or set CHROMIUM")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    assert run(["demo", "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def page(browser, folder):
    page = browser.new_context(offline=True, viewport={"width": 1200, "height": 900}).new_page()
    page.trouble, page.requests = [], []
    page.on(
        "console", lambda message: page.trouble.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto((folder / "report.html").as_uri())
    page.wait_for_selector(".js-plotly-plot .main-svg")
    yield page
    page.close()


def test_no_error_and_no_request(page, folder):
    assert page.trouble == []
    assert page.requests == [(folder / "report.html").as_uri()]


def test_curves_are_drawn(page):
    assert page.locator(".js-plotly-plot").count() == 5
    for plot in (0, 1):
        path = page.locator(".js-plotly-plot").nth(plot).locator(".scatterlayer path.js-line").first
        assert len(path.get_attribute("d")) > 20
        assert page.evaluate(f"document.querySelectorAll('.js-plotly-plot')[{plot}].layout.yaxis.type") == "log"
    assert page.locator(".js-plotly-plot").nth(3).locator(".barlayer path").count() == 20


def test_values_under_the_pointer(page):
    plot = page.locator(".js-plotly-plot").first
    plot.scroll_into_view_if_needed()
    box = plot.locator(".scatterlayer .point").nth(2).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=5)
    page.wait_for_selector(".hoverlayer .hovertext")
    assert "gap" in plot.locator(".hoverlayer").text_content()


def test_residuals_change_to_a_log_scale(page):
    plot = page.locator(".js-plotly-plot").nth(2)
    visible = plot.locator(".scatterlayer .trace").count()
    plot.locator(".updatemenu-button", has_text="logarithmic").click()
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot')[2].layout.xaxis.type === 'log'")
    assert plot.locator(".scatterlayer .trace").count() == visible > 0
    assert page.trouble == []


def test_figures_stay_inside_the_page(page):
    for width in (1200, 700):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_screenshot(page, folder):
    page.screenshot(path=os.environ.get("SCREENSHOT", str(folder / "report.png")), full_page=True)
