"""The front page: its program runs, its links and pictures are there."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def test_program_of_the_readme_runs(capsys, tmp_path):
    """The Python block prints the poses' shape and a report of 200 steps."""
    (block,) = re.findall(r"^```python\n(.*?)^```$", (REPOSITORY / "README.md").read_text(), re.M | re.S)
    source = tmp_path / "readme.py"
    source.write_text(block)
    exec(compile(block, str(source), "exec"), {"__name__": "readme"})
    assert "step_count=200" in capsys.readouterr().out


def test_links_of_the_front_pages_lead_to_files():
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)", (REPOSITORY / page).read_text()):
            if "://" not in target:
                assert (REPOSITORY / target).exists(), f"{page} links to '{target}', which is missing"
