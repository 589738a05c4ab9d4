"""Versions of MuJoCo: faulty ones that must not be used, and features that depend on the version."""

FAULTY = {"4.0.0": "its Newton solver factors sparse matrices wrongly"}
"""Faulty versions and their faults."""
# The first version of MuJoCo Warp that accepts margins between boxes and meshes; 3.14 to 3.16 refuse such
# models.
WARP_MARGINS_FROM = (3, 17)


def check_version() -> None:
    """Raise if the installed MuJoCo is faulty.

    Raises:
        ImportError: If so.
    """
    import mujoco

    version = mujoco.mj_versionString()
    if version in FAULTY:
        raise ImportError(
            f"SolverMuJoCo: MuJoCo {version} is installed, but {FAULTY[version]}. Install another version of "
            f"mujoco, and of mujoco-warp, such as 'mujoco!={version}'."
        )


def warp_takes_margins() -> bool:
    """Return whether MuJoCo Warp, which has the version of MuJoCo, accepts margins of boxes and meshes."""
    import mujoco

    major, minor = mujoco.mj_versionString().split(".")[:2]
    return (int(major), int(minor)) >= WARP_MARGINS_FROM
