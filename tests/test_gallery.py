"""The gallery: each script runs in a short form and draws what it says, and the page shows what they made."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PIL", reason="Pillow is not installed: pip install pluriverse[view]")

DOCS = Path(__file__).resolve().parent.parent / "docs"
GALLERY = DOCS / "gallery"
SMALL = ["--width", "96", "--samples", "1"]


def play(name, output, monkeypatch, capsys, *options) -> str:
    """Run a script and return what it prints, once it is sure that the picture shows more than a sky."""
    from PIL import Image

    monkeypatch.setattr(sys, "argv", [name, *SMALL, *options, "--output", str(output)])
    runpy.run_path(str(GALLERY / name), run_name="__main__")
    with Image.open(output) as image:
        assert image.size[0] == 96
        colors = np.asarray(image.convert("RGB"), dtype=float)
    middle = colors[len(colors) // 4 : -len(colors) // 4]
    assert middle.std(axis=(0, 1)).max() > 10.0
    return capsys.readouterr().out


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)]


def test_mixed_worlds_are_drawn(tmp_path, monkeypatch, capsys):
    play("mixed.py", tmp_path / "mixed.png", monkeypatch, capsys, "--seconds", "0.1")


def test_variants_are_drawn(tmp_path, monkeypatch, capsys):
    play("variants.py", tmp_path / "variants.gif", monkeypatch, capsys, "--seconds", "0.2", "--fps", "5")


def test_robots_of_packages(tmp_path, monkeypatch, capsys):
    pytest.importorskip("gymnasium", reason="gymnasium is not installed, whose robots are drawn")
    said = play("robots.py", tmp_path / "robots.png", monkeypatch, capsys, "--count", "4", "--columns", "2")
    assert re.search(r"^[24] robots: ", said, re.M)


def test_painted_pressure_carries_what_the_contacts_carry(tmp_path, monkeypatch, capsys):
    said = play("patches.py", tmp_path / "patches.png", monkeypatch, capsys, "--seconds", "2")
    lines = [numbers(line) for line in said.splitlines() if "of weight" in line]
    assert len(lines) == 4
    for contact, painted, weight in lines:
        assert painted == pytest.approx(contact, rel=0.01)
        assert contact == pytest.approx(weight, rel=0.01)


def test_linkage_draws_a_straight_line(tmp_path, monkeypatch, capsys):
    said = play("loops.py", tmp_path / "loops.gif", monkeypatch, capsys, "--seconds", "0.4", "--fps", "5")
    (off, length) = numbers(said.splitlines()[-1])
    assert off < 0.1  # mm
    assert length > 0.7  # m


def test_quadrupeds_stand_on_terrain(tmp_path, monkeypatch, capsys):
    said = play("terrain.py", tmp_path / "terrain.png", monkeypatch, capsys, "--seconds", "1.5")
    assert numbers(said.splitlines()[-1])[1] < 0.5


def test_nuts_go_down_their_threads(tmp_path, monkeypatch, capsys):
    said = play("nut.py", tmp_path / "nut.gif", monkeypatch, capsys, "--seconds", "0.4", "--fps", "5")
    turns = [numbers(line)[2] for line in said.splitlines() if line.startswith("friction")]
    assert min(turns[0], turns[2], turns[3]) > 0.05
    assert abs(turns[1]) < 0.05


def test_page_shows_each_script_and_its_picture():
    page = (DOCS / "gallery.md").read_text()
    for script in GALLERY.glob("*.py"):
        assert f"docs/gallery/{script.name}" in page, f"the page does not name {script.name}"
    shown = set(re.findall(r"\(gallery/([\w.]+)\)", page))
    assert shown == {file.name for file in GALLERY.iterdir() if file.suffix in (".jpg", ".gif")}
    assert sum((GALLERY / name).stat().st_size for name in shown) < 4_000_000
