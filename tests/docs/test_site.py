"""The check of the built site can fail, and the tutorials are shown as they ran."""

import pytest

from experiments.site import check
from experiments.site.assemble import PAGES, from_root
from experiments.site.tutorials import sources

GOOD = '<a href="other/#part">x</a><script src="app.js"></script><a href="https://e.org">e</a>'


def site(folder, text):
    (folder / "other").mkdir(exist_ok=True)
    (folder / "other" / "index.html").write_text('<h2 id="part">Part</h2>', encoding="utf-8")
    (folder / "index.html").write_text(text, encoding="utf-8")
    return check.problems(folder)


def test_a_good_site_has_no_problems(tmp_path):
    assert site(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<a href="nowhere/">x</a>', "does not exist"),
        ('<a href="other/#nothing">x</a>', "no such anchor"),
        ('<script src="https://e.org/a.js"></script>', "fetches"),
        ('<link rel="stylesheet" href="//fonts.example/f.css">', "fetches"),
        ('<img src="http://e.org/a.png">', "fetches"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, said):
    (found,) = site(tmp_path, text)
    assert said in found


def test_files_at_the_root_link_on():
    assert "](../threat-model.md)" in from_root("SECURITY.md")
    assert not [name for name in PAGES if "](docs/" in from_root(name)]


def test_there_are_five_tutorials():
    names = [path.stem for path in sources()]
    assert names == ["arrays", "intervals", "polygenic", "steward", "survey"]


def test_figures_text_and_cells_of_a_notebook_are_shown():
    nbformat = pytest.importorskip("nbformat", reason="make tutorials installs it")
    from experiments.site.tutorials import as_markdown

    cell = nbformat.v4.new_code_cell("1 + 1", outputs=[])
    cell.outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="one "),
        nbformat.v4.new_output("stream", name="stderr", text="line\n"),
        nbformat.v4.new_output("execute_result", data={"text/plain": "2"}),
        nbformat.v4.new_output("display_data", data={"image/svg+xml": "<?xml?><svg>o</svg>"}),
    ]
    hidden = nbformat.v4.new_code_cell("secret", metadata={"tags": ["hide"]})
    shell = nbformat.v4.new_code_cell("%%bash\nprimo --version 2>&1")
    cells = [nbformat.v4.new_markdown_cell("# Title"), cell, hidden, shell]
    text = as_markdown(nbformat.v4.new_notebook(cells=cells))
    assert text.startswith("# Title\n\n```python\n1 + 1\n```")
    assert "```{ .text .output }\none line\n```" in text
    assert '<div class="figure"><svg>o</svg></div>' in text
    assert "secret" not in text
    assert "```bash\nprimo --version\n```" in text


def test_readers_get_a_notebook_without_output():
    nbformat = pytest.importorskip("nbformat", reason="make tutorials installs it")
    from experiments.site.tutorials import as_given

    ran = nbformat.v4.new_code_cell("1 + 1", execution_count=3)
    ran.outputs = [nbformat.v4.new_output("stream", name="stdout", text="2")]
    hidden = nbformat.v4.new_code_cell("assert True", metadata={"tags": ["hide"]})
    (cell,) = as_given(nbformat.v4.new_notebook(cells=[ran, hidden])).cells
    assert (cell.source, cell.outputs, cell.execution_count) == ("1 + 1", [], None)
    assert ran.outputs
