"""The page in a real browser: every control, two widths, two themes, no error, no request."""

import json
import math
import shutil
import time

import pytest
from scipy.special import log_ndtr

CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not (CHROMIUM and CHROMEDRIVER):
    pytest.skip(
        "needs chromium and chromedriver (Debian: chromium-driver)", allow_module_level=True
    )
webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")

from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def visit(browser, pages, tmp_path):
    """Open the page of a release; afterwards nothing may have gone wrong or over the network."""

    def show(kind, *, width=1280, dark=False):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        path = tmp_path / f"{kind}.html"
        path.write_text(pages(kind), encoding="utf-8")
        browser.get(path.as_uri())
        return browser

    browser.get_log("performance")
    yield show
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "DEBUG"] == []
    for entry in browser.get_log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            assert event["params"]["request"]["url"].startswith(("file:", "data:"))
        assert event["method"] != "Network.loadingFailed"


def overflow(browser):
    return browser.execute_script(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


def rows(browser, table):
    return browser.find_elements(By.CSS_SELECTOR, f"#{table} tbody tr")


def cells(browser, table, column):
    found = browser.find_elements(By.CSS_SELECTOR, f"#{table} tbody tr > :nth-child({column})")
    return [cell.text for cell in found]


def painted(browser, host):
    """How many different colours a canvas shows."""
    return browser.execute_script(
        """const c = document.querySelector(arguments[0] + ' canvas');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        const seen = new Set();
        for (let i = 0; i < d.length; i += 4) if (d[i + 3]) seen.add(d.slice(i, i + 3).join());
        return seen.size;""",
        f"#{host}",
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_clicking_through(visit, width, dark):
    browser = visit("genomic", width=width, dark=dark)
    assert overflow(browser) <= 0
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 24, 28)") == dark

    # Outcomes: filter, search, sort.
    everything = len(rows(browser, "outcome-table"))
    Select(browser.find_element(By.CSS_SELECTOR, "#outcome-table select")).select_by_value("found")
    assert 0 < len(rows(browser, "outcome-table")) < everything
    Select(browser.find_element(By.CSS_SELECTOR, "#outcome-table select")).select_by_value("all")
    search = browser.find_element(By.CSS_SELECTOR, "#outcome-table input")
    search.send_keys("Y1")
    assert set(cells(browser, "outcome-table", 1)) == {"y1", *(f"y1{k}" for k in range(10))}
    search.clear()
    search.send_keys(" ")
    headers = browser.find_elements(By.CSS_SELECTOR, "#outcome-table thead button")
    headers[1].click()
    scores = [float(words.split()[0]) for words in cells(browser, "outcome-table", 2)]
    assert scores == sorted(scores, reverse=True)
    headers[1].click()
    assert scores != [float(words.split()[0]) for words in cells(browser, "outcome-table", 2)]

    # From an outcome to its coefficients.
    link = browser.find_element(By.CSS_SELECTOR, "#outcome-table .link")
    name = link.text
    link.click()
    chosen = Select(browser.find_element(By.ID, "outcome"))
    assert chosen.first_selected_option.text == name
    chosen.select_by_index(0)

    # Tabs by pointer and by key.
    for tab, host in (("map", "map"), ("position", "position"), ("volcano", "volcano")):
        browser.find_element(By.ID, f"tab-{tab}").click()
        assert browser.find_element(By.ID, f"view-{tab}").is_displayed()
        assert painted(browser, host) > 5
        assert overflow(browser) <= 0
    browser.find_element(By.ID, "tab-volcano").send_keys(Keys.ARROW_RIGHT)
    assert browser.find_element(By.ID, "view-table").is_displayed()
    assert not browser.find_element(By.ID, "view-volcano").is_displayed()
    assert overflow(browser) <= 0
    search = browser.find_element(By.CSS_SELECTOR, "#cell-table input")
    search.send_keys("x12")
    assert cells(browser, "cell-table", 1) == ["x12"]
    browser.find_element(By.ID, "table-all").click()
    assert len(set(cells(browser, "cell-table", 2))) == 20
    browser.find_element(By.CSS_SELECTOR, "#cell-table .link").click()
    assert browser.find_element(By.CSS_SELECTOR, "#detail h3").text.startswith("x12 → ")

    # Theme: auto, light, dark, auto.
    toggle = browser.find_element(By.ID, "theme")
    seen = []
    for _ in range(3):
        toggle.click()
        seen.append(
            browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        )
    assert seen == ["rgb(251, 250, 247)", "rgb(20, 24, 28)", background]


def test_keys_go_through_points_and_cells(visit, releases):
    browser = visit("genomic")
    heat = browser.find_element(By.CSS_SELECTOR, "#map canvas")
    before = browser.find_element(By.CSS_SELECTOR, "#detail h3").text
    heat.send_keys(Keys.ARROW_RIGHT)
    heat.send_keys(Keys.ARROW_RIGHT)
    after = browser.find_element(By.CSS_SELECTOR, "#detail h3").text
    assert before.split(" → ")[0] == after.split(" → ")[0]
    assert before != after
    browser.find_element(By.ID, "tab-position").click()
    points = browser.find_element(By.CSS_SELECTOR, "#position canvas")
    points.send_keys(Keys.ARROW_RIGHT)
    points.send_keys(Keys.ARROW_RIGHT)
    assert browser.find_element(By.CSS_SELECTOR, "#detail h3").text != after
    assert "Arrow keys" in points.get_attribute("aria-label")


def test_p_values_of_the_script(visit, pages, numbers_in):
    """The one formula that the page computes itself, however small its value."""
    browser = visit("genomic")
    browser.find_element(By.ID, "tab-table").click()
    shown = dict(zip(cells(browser, "cell-table", 1), cells(browser, "cell-table", 6), strict=True))
    data = numbers_in(pages("genomic"))
    down = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    for feature, z in zip(data["features"]["name"], data["cells"]["z"], strict=False):
        if feature in shown:
            words = shown[feature].translate(down).replace("·10", "e")
            expected = 2 * math.exp(log_ndtr(-abs(z)))
            assert float(words) == pytest.approx(expected, rel=0.06)


def test_hover_shows_an_interval(visit):
    browser = visit("plain")
    browser.find_element(By.ID, "tab-volcano").click()
    canvas = browser.find_element(By.CSS_SELECTOR, "#volcano canvas")
    webdriver.ActionChains(browser).move_to_element_with_offset(canvas, 0, 110).perform()
    box = canvas.rect
    tip = browser.find_element(By.ID, "tip")
    for step in range(0, int(box["width"]) // 2, 15):
        webdriver.ActionChains(browser).move_to_element_with_offset(canvas, step, 118).perform()
        if tip.is_displayed():
            break
    assert " to " in tip.text
    assert "q " in tip.text


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    "kind", ["one", "many", "features", "projected", "noisy", "extension", "paper"]
)
def test_other_kinds_of_release(visit, kind, width):
    browser = visit(kind, width=width)
    assert overflow(browser) <= 0
    tabs = [t for t in browser.find_elements(By.CSS_SELECTOR, '[role="tab"]') if t.is_displayed()]
    assert len(tabs) == (2 if kind == "projected" else 4)
    for tab in tabs:
        tab.click()
        assert overflow(browser) <= 0
    assert rows(browser, "cell-table")


def test_hostile_names_stay_words(visit, hostile):
    browser = visit("hostile")
    for tab in ("map", "position", "volcano", "table"):
        browser.find_element(By.ID, f"tab-{tab}").click()
    time.sleep(0.1)
    assert browser.execute_script("return window.hurt") is None
    assert set(cells(browser, "cell-table", 1)) == set(hostile)
    assert browser.find_element(By.TAG_NAME, "h1").text == hostile[2]
    assert not browser.find_elements(By.TAG_NAME, "img")
