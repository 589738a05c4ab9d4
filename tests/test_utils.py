"""Helpers that scripts for Newton call."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse import utils
from pluriverse.scene.asset_cache import AssetFetchError
from pluriverse.scene.git_source import GitSource


def test_an_asset_of_the_examples_comes_from_the_cache(tmp_path, monkeypatch):
    """A checkout that is there is used without asking anybody; without one, the error says what to do."""
    monkeypatch.setenv("SAP_WARP_ASSET_OFFLINE", "1")
    with pytest.raises(AssetFetchError, match="is not in the asset cache"):
        pv.utils.download_asset("robot_arm", cache_dir=tmp_path)
    source = GitSource(repo=utils.ASSETS, rev=utils.ASSETS_COMMIT, path="robot_arm")
    checkout = tmp_path / "git" / source._key() / source.rev
    (checkout / ".git").mkdir(parents=True)
    (checkout / ".git" / "HEAD").write_text(source.rev)
    (checkout / "robot_arm").mkdir()
    (checkout / "robot_arm" / "arm.urdf").write_text("<robot/>")
    folder = pv.utils.download_asset("robot_arm", cache_dir=tmp_path)
    assert [file.name for file in folder.iterdir()] == ["arm.urdf"]
    for name, ref in (("../secret", None), ("robot_arm", "main"), ("/etc", None)):
        with pytest.raises(ValueError, match="download_asset: "):
            pv.utils.download_asset(name, cache_dir=tmp_path, ref=ref)


def test_offsets_are_those_of_replicate():
    box = pv.ModelBuilder()
    box.add_body(mass=1.0)
    builder = pv.ModelBuilder()
    builder.replicate(box, 5, spacing=(2.0, 3.0, 0.0))
    offsets = pv.utils.compute_world_offsets(5, (2.0, 3.0, 0.0))
    np.testing.assert_allclose(builder.body_q[:, :3], offsets)
    assert len(np.unique(offsets, axis=0)) == 5
    with pytest.raises(ValueError, match="world_count is -1"):
        pv.utils.compute_world_offsets(-1, (1.0, 0.0, 0.0))


def test_colours_of_screens_and_light():
    """Half the light is a value of 0.7354 in sRGB (IEC 61966-2-1); there and back is the identity."""
    half = pv.utils.color_linear_to_srgb((0.0, 0.5, 1.0))
    np.testing.assert_allclose(half, (0.0, 0.735357, 1.0), atol=1e-6)
    grey = np.linspace(0.0, 1.0, 23)
    back = pv.utils.color_srgb_to_linear(pv.utils.color_linear_to_srgb(grey))
    # The two pieces of the curve meet to 3e-8.
    np.testing.assert_allclose(back, grey, atol=1e-7)
    with pytest.raises(ValueError, match="components must be numbers from 0 to 1"):
        pv.utils.color_srgb_to_linear((255, 0, 0))
    assert pv.utils.bourke_color_map(1.0, 3.0, 2.0) == [0.0, 1.0, 0.0]
    assert pv.utils.bourke_color_map(1.0, 3.0, -7.0) == [0.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="the lower one first"):
        pv.utils.bourke_color_map(3.0, 1.0, 2.0)


def test_images_are_four_channels_of_eight_bits():
    pixels = pv.utils.load_texture(np.full((2, 3, 3), 0.5))
    assert pixels.shape == (2, 3, 4)
    assert pixels.dtype == np.uint8
    assert pv.utils.load_texture(None) is None
