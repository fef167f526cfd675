"""The page as text: whole, self-contained, escaped, and saying what it must."""

import dataclasses
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import escape

import primo
from primo.released import uncertainty
from primo.report import write_report
from primo.report.guessing import for_person, right_at_most
from primo.report.page import report_html
from primo.report.prose import at_most, number, percent_up, thousands

VOID = {"meta", "link", "img", "input", "br"}


class Tree(HTMLParser):
    """Collect tags, attributes and words, and check that tags nest."""

    def __init__(self):
        super().__init__()
        self.tags, self.open, self.words = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def parsed(page):
    tree = Tree()
    tree.feed(page)
    tree.close()
    assert tree.open == []
    return tree


def words_of(page):
    visible = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"[ \n]+", " ", re.sub(r"<[^>]*>", " ", visible))


def test_every_kind_of_release_has_a_whole_page(pages, kinds):
    for kind in kinds:
        tree = parsed(pages(kind))
        ids = [attrs["id"] for _, attrs in tree.tags if "id" in attrs]
        assert len(ids) == len(set(ids)), kind
        links = {attrs["href"][1:] for tag, attrs in tree.tags if tag == "a"}
        assert links <= set(ids), kind
        controlled = {a["aria-controls"] for _, a in tree.tags if "aria-controls" in a}
        assert controlled <= set(ids), kind
        assert "{{" not in words_of(pages(kind)).replace("{{style}} {{data}}", ""), kind


def test_nothing_is_fetched(pages, kinds):
    for kind in kinds:
        page = pages(kind)
        for tag, attrs in parsed(page).tags:
            assert "src" not in attrs, (kind, tag)
            if tag == "link":
                assert attrs["href"] == "data:,"
        style = page[page.index("<style>") : page.index("</style>")]
        assert "url(" not in style
        assert "@import" not in style
        assert "default-src 'none'" in page
    scripts = page[page.rindex("<script>") :]
    for word in (
        "innerHTML",
        "outerHTML",
        "document.write",
        "eval(",
        "fetch(",
        "XMLHttp",
        "import(",
    ):
        assert word not in scripts, word


def test_names_cannot_become_markup(pages, hostile, numbers_in):
    page = pages("hostile")
    tree = parsed(page)
    assert [tag for tag, _ in tree.tags].count("script") == 2
    assert not [tag for tag, _ in tree.tags if tag in ("img", "iframe")]
    assert not [name for _, attrs in tree.tags for name in attrs if name.startswith("on")]
    data = numbers_in(page)
    assert sorted(data["features"]["name"]) == sorted(hostile)
    assert sorted(data["outcomes"]["name"]) == sorted(hostile[2:])
    assert hostile[2] in "".join(tree.words)  # the title, as words


def test_the_same_release_gives_the_same_page(releases, pages):
    """The same words, and numbers that are the same but for rounding in the second computation."""
    digits = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")
    texts = pages("plain"), report_html(releases("plain"))
    first, again = ([float(found) for found in digits.findall(page)] for page in texts)
    assert digits.sub("#", texts[0]) == digits.sub("#", texts[1])
    np.testing.assert_allclose(again, first, rtol=1e-3, atol=1e-6)


def test_a_large_release_stays_small(pages, releases, numbers_in):
    page = pages("many")
    assert len(page) < 3_000_000
    data, plan = numbers_in(page), releases("many").plan
    shown = data["detailed"] * len(data["features"]["name"])
    assert shown == 30_000
    assert f"carries {thousands(shown)} of the {thousands(plan.d * plan.l)}" in page
    assert "write_table" in page


@pytest.mark.parametrize("kind", ["plain", "features", "outcomes", "extension", "paper"])
def test_the_guarantee_in_numbers(releases, pages, kind):
    release, said = releases(kind), words_of(pages(kind))
    plan = release.plan
    for value in (plan.epsilon, plan.mu, plan.budget.delta, plan.total_mu):
        assert at_most(value) in said
    assert at_most(plan.total_epsilon if plan.earlier_mu else plan.epsilon) in said
    assert f"σ = {number(plan.association_sigma, 4)}" in said
    for sigma in (plan.covariance_sigma, plan.outcome_sigma):
        assert (f"σ = {number(sigma, 4)}" if sigma else "none, because public") in said
    statement = pages(kind)
    assert escape(release.statement()) in statement
    assert thousands(plan.n) in said


@pytest.mark.parametrize(
    ("kind", "protected", "public"),
    [
        ("plain", ["6 features of every", "8 outcomes of every"], []),
        ("features", ["6 features of every"], ["all 8 outcomes of every person"]),
        ("outcomes", ["8 outcomes of every"], ["all 6 features of every person"]),
    ],
)
def test_what_is_protected_and_what_is_not(pages, kind, protected, public):
    page = pages(kind)
    yes = re.search(r'<ul class="yes">(.*?)</ul>', page)[1]
    no = re.search(r'<ul class="no">(.*?)</ul>', page)[1]
    assert yes.count("of every person") == len(protected)
    for words in protected:
        assert words in yes
    for words in public:
        assert words in no
    assert no.count("of every person") == len(public)


def test_several_rounds_say_what_is_for_one(pages, releases):
    release, said = releases("rounds"), words_of(pages("rounds"))
    for sigma in (release.covariance_sigma, release.association_sigma, release.outcome_sigma):
        assert f"σ = {number(sigma, 4)} in scaled units, all rounds together" in said
    assert "Predicted R² by budget, with one round: this release has several" in said
    assert "everything else unchanged, with one round." in said
    plain = words_of(pages("plain"))
    assert "Predicted R² by budget" in plain
    assert "one round" not in plain
    assert "all rounds together" not in plain


def test_warnings_come_first(pages):
    assert "Not for publication." in pages("plain")
    assert 'May it be published?</h3><p class="value">No' in pages("plain")
    fresh = pages("fresh")
    assert "Not for publication." not in fresh
    assert 'May it be published?</h3><p class="value">Yes' in fresh
    assert "Noise as printed in the paper." in pages("paper")
    assert "Together with earlier releases." in pages("extension")
    assert "Together with earlier releases." not in fresh


def test_a_person_with_several_rows(releases):
    release = releases("fresh")
    plan = dataclasses.replace(release.plan, rows_per_person=2)
    said = words_of(report_html(dataclasses.replace(release, plan=plan)))
    person = for_person(plan)
    assert f"ε = {at_most(person.epsilon)}" in said
    assert f"at most {percent_up(right_at_most(person.mu))}" in said
    assert "for a person, who owns 2 rows" in said


def test_doubts_in_words(pages, releases):
    doubts = pages("noisy")[pages("noisy").index('id="doubts"') :]
    assert "5 times the covariance noise" in doubts
    assert "conservative p-values" in doubts
    assert "sampled rows" in words_of(pages("sampled"))
    assert "projected, so its noise has no known law" in words_of(pages("projected"))


def test_public_features_that_are_not_attached(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 90)), rng.standard_normal((60, 2))
    model = primo.PrimoRegressor(
        epsilon=5, delta=1e-4, protection="outcomes", outcome_bounds=4.0
    ).fit(X, Y)
    loaded = primo.load_release(primo.save_release(model.release_, tmp_path / "r.npz"))
    assert "with_public_features" in report_html(loaded)
    assert '"shrunk":[' in report_html(model.release_)


def test_writing_is_whole_or_not_at_all(releases, tmp_path):
    path = write_report(releases("plain"), tmp_path / "report.html", title="A title", date="today")
    page = path.read_text(encoding="utf-8")
    assert "<h1>A title</h1>" in page
    assert "today" in page
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert path.stat().st_mode & 0o044
    with pytest.raises(primo.InputError, match="does not exist"):
        write_report(releases("plain"), tmp_path / "none" / "report.html")
    with pytest.raises(primo.InputError, match="is a folder"):
        write_report(releases("plain"), tmp_path)
    with pytest.raises(primo.InputError, match="expected a release"):
        write_report("release.npz", tmp_path / "r.html")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0"),
        (1.2345, "1.23"),
        (186.71, "187"),
        (14_625.3, "14\u202f625"),
        (2.5e-7, "2.5·10⁻⁷"),
    ],
)
def test_numbers_in_words(value, words):
    assert number(value) == words


def test_a_statement_never_understates_a_loss():
    assert at_most(1e-6) == "10⁻⁶"
    assert at_most(2.28801) == "2.289"
    assert at_most(2.2885) == "2.289"
    assert at_most(5.0) == "5"
    assert percent_up(0.66201) == "66.3\u202f%"
    assert percent_up(0.5) == "50.0\u202f%"


def test_surrogates_are_spelled_out(releases):
    page = report_html(releases("one"), title="a\ud800b")
    assert "<h1>a\\ud800b</h1>" in page


def test_brief_has_an_accuracy_card(pages, releases):
    for kind in ("plain", "one", "noisy", "many"):
        page = pages(kind)
        card = page[page.index("Accuracy on new rows") :]
        card = card[: card.index("</div>")]
        published = uncertainty.published_r_squared(releases(kind))
        if published.pooled_trusted:
            assert f"about {published.pooled:.2f}".replace("-0.00", "0.00") in card
        else:
            assert "not determined" in card or " to " in card
        known = published.r_squared[published.trusted]
        if len(known) and len(published.r_squared) > 1:
            assert f"{len(known)} of".replace(",", "\u202f") in card.replace("\u202f", "")
    card = pages("projected")[pages("projected").index("Accuracy on new rows") :]
    assert "not known" in card[: card.index("</div>")]


def test_bounds_that_do_not_fit_are_among_the_doubts():
    rng = np.random.default_rng(1)
    X = rng.binomial(2, 0.3, size=(3000, 5)).astype(float)
    Y = 1.0 + (X[:, :1] + rng.normal(size=(3000, 1)) > 1)
    model = primo.PrimoRegressor(
        epsilon=5, delta=1e-6, feature_bounds=(0, 2), outcome_bounds=(0, 1)
    ).fit(X, Y)
    page = report_html(model.release_)
    doubts = page[page.index('id="doubts"') :]
    assert "next to or beyond one end of their range" in doubts
    assert "1 and 2 in a range of 0 to 1" in doubts
    assert "--frequencies" in doubts
    assert len(model.release_.doubts()) == 2
