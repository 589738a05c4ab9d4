"""Versions of MuJoCo that must not be used, whatever a package manager has installed."""

FAULTY = {"4.0.0": "its Newton solver factors sparse matrices wrongly"}
"""Versions and what is wrong with them."""


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
