"""Arrays of states and contacts that scripts request by name."""

from collections.abc import Sequence

from pluriverse.model.schema import REQUESTED_ARRAYS

_STATE = {
    "body_parent_f": "the force of a joint is measured by builder.add_sensor_force_torque",
    "mujoco:qfrc_actuator": "the force of drives is measured by a sensor of type JOINTACTUATORFRC",
}


def check_state_attributes(owner: str, names: Sequence[str]) -> None:
    """Check the names of arrays of states.

    Raises:
        ValueError: If there is no such array.
    """
    for name in names:
        if name not in REQUESTED_ARRAYS:
            reason = _STATE.get(name, "there is none of this name")
            raise ValueError(
                f"{owner}.request_state_attributes: {name!r} cannot be requested: {reason}. There is "
                f"{', '.join(map(repr, REQUESTED_ARRAYS))}."
            )


def check_contact_attributes(owner: str, names: Sequence[str]) -> None:
    """Check the names of arrays of contacts.

    Raises:
        ValueError: If there is no such array.
    """
    for name in names:
        if name != "force":
            raise ValueError(
                f"{owner}.request_contact_attributes: {name!r} cannot be requested. There is 'force', which "
                "is Contacts.rigid_contact_force."
            )
