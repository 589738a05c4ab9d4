"""Documentation: every Python block of a page runs, in order, and prints the text block that follows it."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.cluster.local_cluster import cluster_of_this_process

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PAGES = sorted(
    page for page in [*DOCS.glob("*.md"), *DOCS.glob("tutorial/*.md")] if "```python\n" in page.read_text()
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_of_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    """The blocks of a page share their names, like the lines of one program."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    if "pluriverse import envs" in text:
        pytest.importorskip("rsl_rl", reason="rsl_rl is not installed: pip install pluriverse[learn]")
    if "add_usd(" in text:
        pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")
    needs_ray = "from pluriverse.cluster import" in text
    if needs_ray:
        pytest.importorskip("ray", reason="Ray is not installed: pip install pluriverse[cluster]")
    names: dict[str, object] = {"__name__": f"docs_{page.stem}"}
    printed = None
    with cluster_of_this_process(2) if needs_ray else contextlib.nullcontext():
        for block in BLOCK.finditer(text):
            language, body = block.groups()
            if language == "python":
                # Warp reads the source of kernels from files.
                source = tmp_path / f"{page.stem}_{text[: block.start()].count(chr(10))}.py"
                source.write_text(body)
                with contextlib.redirect_stdout(io.StringIO()) as output:
                    exec(compile(body, str(source), "exec"), names)
                printed = output.getvalue()
            elif language == "text" and printed is not None:
                assert printed == body
                printed = None
