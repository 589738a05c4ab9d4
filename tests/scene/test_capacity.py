"""Worlds that no memory holds are refused before they are made."""

import pytest

from pluriverse.scene import SapSceneLoaderError, capacity, load_scene

from .scene_files import BOX, load_text, write_scene


def test_the_message_says_how_much_is_asked_for_and_how_much_there_is(tmp_path, monkeypatch):
    """A box has a body, a joint, a shape and six degrees of freedom: nine entries."""
    monkeypatch.setattr(capacity, "available_memory", lambda: 2**30)
    with pytest.raises(
        SapSceneLoaderError, match=r"1,000,000 worlds .* about 9\.3 GiB .* and 1\.0 GiB are free"
    ):
        load_scene(write_scene(tmp_path, BOX), device="cpu", num_worlds=1_000_000)


def test_contact_slots_count_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr(capacity, "available_memory", lambda: 2**30)
    load_text(
        tmp_path,
        BOX + "simulation: {max_rigid_contact: 1000, num_worlds: 1000}\nreplicate: {spacing: [0, 0, 0]}",
    )
    with pytest.raises(SapSceneLoaderError, match="max_rigid_contact"):
        load_text(tmp_path, BOX + "simulation: {max_rigid_contact: 100000, num_worlds: 1000}")


def test_indices_have_32_bits(tmp_path, monkeypatch):
    """Where the system does not tell its memory, the range of indices still holds."""
    monkeypatch.setattr(capacity, "available_memory", lambda: None)
    with pytest.raises(SapSceneLoaderError, match="a model counts to 2,147,483,647"):
        load_text(tmp_path, BOX + "simulation: {num_worlds: 400000000}")


def test_kinds_of_world_are_counted_together(tmp_path, monkeypatch):
    monkeypatch.setattr(capacity, "available_memory", lambda: 10_000 * 30)
    write_scene(tmp_path, BOX, "box.yaml")
    outer = "worlds: [{{scene: box.yaml, count: {0}}}, {{scene: box.yaml, count: {0}, name: other}}]"
    load_text(tmp_path, outer.format(10))
    with pytest.raises(SapSceneLoaderError, match="62 worlds"):
        load_text(tmp_path, outer.format(31))


def test_the_memory_of_this_machine_is_plausible_or_unknown():
    available = capacity.available_memory()
    assert available is None or 2**20 < available < 2**50
