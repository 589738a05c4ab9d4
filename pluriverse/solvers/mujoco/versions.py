"""Versions of MuJoCo: which must not be used, whatever a package manager has installed; what they can do."""

FAULTY = {"4.0.0": "its Newton solver factors sparse matrices wrongly"}
"""Versions and what is wrong with them."""
# The first version of MuJoCo Warp that takes margins between boxes and meshes; 3.14, 3.15 and
# 3.16 refuse such models.
WARP_MARGINS_FROM = (3, 17)


def check_version() -> None:
    """Raise where the installed MuJoCo is faulty.

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
    """Return whether MuJoCo Warp, which has the version of MuJoCo, takes margins of boxes and meshes."""
    import mujoco

    major, minor = mujoco.mj_versionString().split(".")[:2]
    return (int(major), int(minor)) >= WARP_MARGINS_FROM
