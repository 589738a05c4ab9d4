"""Threads as meshes: closed, with the profile and helix that the standard gives, and fitting each other."""

import numpy as np
import pytest
import trimesh

import pluriverse as pv
from pluriverse.geometry import bolt_mesh, nut_mesh

# An M20 of coarse pitch.
DIAMETER, PITCH = 0.02, 0.0025
ROUNDING = 1e-8


def solid(mesh: pv.Mesh) -> trimesh.Trimesh:
    return trimesh.Trimesh(mesh.vertices, mesh.triangles, process=False)


def test_bolts_and_nuts_are_closed_and_face_outwards():
    """Every edge has two triangles that run along it opposite ways, and the volume is positive."""
    meshes = [
        bolt_mesh(DIAMETER, PITCH, 0.03),
        bolt_mesh(DIAMETER, PITCH, 0.0301, head_diameter=0.03, head_height=0.013, segments=24),
        nut_mesh(DIAMETER, PITCH, 0.016, clearance=1e-4, segments=36),
        nut_mesh(DIAMETER, PITCH, 0.0007, clearance=1e-3, width=0.05, segments=12),
    ]
    for mesh in meshes:
        body = solid(mesh)
        assert mesh.is_closed
        assert body.is_watertight
        assert body.is_winding_consistent
        assert body.volume > 0.0


def test_thread_has_the_profile_of_the_standard():
    """A right-handed helix between the outer and the core diameter, which is 1.0825 pitches less."""
    vertices = bolt_mesh(DIAMETER, PITCH, 0.03, segments=48).vertices.astype(float)
    radius = np.hypot(vertices[:, 0], vertices[:, 1])
    side = (vertices[:, 2] > 0.004) & (vertices[:, 2] < 0.026)
    core = 0.5 * DIAMETER - 0.5 * 1.0825 * PITCH
    crest = side & (radius > 0.5 * DIAMETER - ROUNDING)
    root = side & (radius < core + 1e-4 * PITCH)
    assert (crest | root)[side].all()
    # Turned back by its helix, a crest is an eighth of a pitch high and begins at the angle 0.
    turn = np.arctan2(vertices[:, 1], vertices[:, 0]) / (2.0 * np.pi)
    phase = (vertices[:, 2] / PITCH - turn + 0.01) % 1.0 - 0.01
    assert set(np.round(phase[crest], 3)) == {0.0, 0.125}
    assert set(np.round(phase[root] * 16, 2)) == {7.0, 11.0}


def test_volume_of_a_long_rod_is_that_of_the_profile():
    """The mean squared radius of a pitch, less what facets cut off, is the volume by pi and length."""
    length, segments = 0.1, 48
    depth = 5.0 / 16.0 * np.sqrt(3.0) * PITCH
    outer, core = 0.5 * DIAMETER, 0.5 * DIAMETER - depth
    flank = (outer**2 + outer * core + core**2) / 3.0
    mean = outer**2 / 8.0 + core**2 / 4.0 + 5.0 / 8.0 * flank
    facets = np.sin(2.0 * np.pi / segments) / (2.0 * np.pi / segments)
    volume = solid(bolt_mesh(DIAMETER, PITCH, length, segments=segments)).volume
    assert volume == pytest.approx(np.pi * mean * facets * length, rel=2e-3)


def test_nut_fits_where_its_helix_is_that_of_the_bolt():
    """Moved up and turned by the same part of a turn, the threads keep half the clearance on their flanks."""
    clearance = 2e-4
    bolt = solid(bolt_mesh(DIAMETER, PITCH, 0.03))
    nut = nut_mesh(DIAMETER, PITCH, 0.01, clearance=clearance).vertices
    for turns, touches in ((3.0, False), (4.5, False), (4.0 + 1.0 / 3.0, False), (4.5, True)):
        angle = 2.0 * np.pi * (0.0 if touches else turns)
        cosine, sine = np.cos(angle), np.sin(angle)
        rotation = np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
        placed = nut @ rotation.T + [0.0, 0.0, turns * PITCH]
        inside = trimesh.proximity.signed_distance(bolt, placed).max()
        if touches:
            assert inside > 0.1 * PITCH
        else:
            assert inside == pytest.approx(-0.5 * clearance, rel=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bolt_mesh(DIAMETER, 0.0, 0.03), "pitch of the thread is 0.0 m"),
        (lambda: bolt_mesh(DIAMETER, 0.02, 0.03), "makes the thread 0.0108 m deep"),
        (lambda: bolt_mesh(DIAMETER, PITCH, 0.03, segments=20), "segments is 20"),
        (
            lambda: bolt_mesh(DIAMETER, PITCH, 0.03, head_diameter=0.01, head_height=0.01),
            "head is 0.01 m wide",
        ),
        (lambda: nut_mesh(DIAMETER, PITCH, 0.01, clearance=1e-5), "more than 3.82e-05 m"),
        (lambda: nut_mesh(DIAMETER, PITCH, 0.01, clearance=1e-4, width=0.02), "the hole needs 0.0202 m"),
    ],
    ids=["pitch", "depth", "segments", "head", "clearance", "width"],
)
def test_threads_that_cannot_be_are_refused(make, message: str):
    with pytest.raises(ValueError, match=message):
        make()
