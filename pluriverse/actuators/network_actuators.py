"""NetworkActuators: joint efforts from a trained network, evaluated in every solver step."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from pluriverse.actuators.exert import exert_worlds
from pluriverse.actuators.joint_actuators import JointActuators
from pluriverse.model import Control, State
from pluriverse.selection.patterns import Patterns
from pluriverse.simulation import Simulation

_SUFFIXES = {".pt": "torch", ".pth": "torch", ".jit": "torch", ".onnx": "onnx"}


class NetworkActuators(JointActuators):
    """Actuators whose effort a network computes ([Hwangbo2019]) from present and past errors and velocities.

    The features of an actuator are its position errors at present and some solver steps ago, then its
    velocities at the same times; each is multiplied by its scale. The network maps an array [actuator,
    feature] to efforts [actuator] or [actuator, 1]. It runs on the host (ONNX) or with torch, so each solver
    step is replayed separately. Limits, motor and lag are those of `JointActuators`; a delay applies to the
    effort.

    Args:
        simulation: The simulation.
        network: File of a TorchScript (`.pt`, `.jit`) or ONNX (`.onnx`) network, or a function of an array
            [actuator, feature] (NumPy) that returns efforts.
        joints: Labels or patterns of the joints.
        history: Ages of the features in solver steps, 0 for the present.
        position_scale: Factor on position errors [1/rad or 1/m].
        velocity_scale: Factor on velocities [s/rad or s/m].
        effort_scale: Factor on the output of the network [N·m or N].
        velocities_first: Whether velocities come before position errors.
        **options: Options of `JointActuators`, without gains.

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: If torch or onnxruntime is missing.
        TypeError: If the network is a module of PyTorch, which takes tensors.
        ValueError: If the network does not fit the features, or a value is out of range.
    """

    is_recorded = False

    def __init__(
        self,
        simulation: Simulation,
        network: str | Path | Callable[[np.ndarray], Any],
        joints: Patterns = "*",
        *,
        history: Sequence[int] = (0,),
        position_scale: float = 1.0,
        velocity_scale: float = 1.0,
        effort_scale: float = 1.0,
        velocities_first: bool = False,
        **options: Any,
    ):
        what = "NetworkActuators"
        for name in ("stiffness", "damping"):
            if name in options:
                raise ValueError(f"{what}: {name} is given, but the network takes the place of gains.")
        ages = [int(age) for age in history]
        if not ages or min(ages) < 0 or len(set(ages)) != len(ages):
            raise ValueError(
                f"{what}: history is {list(history)}, but it must be different whole numbers >= 0."
            )
        _refuse_module(network)
        self._evaluate = network if callable(network) else _read_network(Path(network), 2 * len(ages))
        self._ages, self._velocities_first = ages, velocities_first
        self._scales = float(position_scale), float(velocity_scale), float(effort_scale)
        model = simulation.model
        self._seen_episode = wp.zeros(model.world_count, dtype=wp.int32, device=model.device)
        super().__init__(simulation, joints, stiffness=0.0, damping=0.0, **options)
        self._past = wp.zeros((max(ages) + 1, 2, len(self.dof)), dtype=wp.float32, device=model.device)
        for name, array in (("past", self._past), ("seen episode", self._seen_episode)):
            simulation.add_snapshot_array(f"network actuators {name}", array)
        self._feedforward = wp.zeros_like(simulation.control.joint_act)
        try:
            self._check_fit()
        except ValueError:
            self.remove()
            raise

    @property
    def drive_parameters(self) -> dict[str, wp.array]:
        """Effort limits; a network has no gains."""
        return {"joint_effort_limit": self.effort_limit}

    def set_seed(self, seed: int, *, identities: Any = None) -> None:
        """Set the seed of the delays; see `JointActuators.set_seed`."""
        super().set_seed(seed, identities=identities)
        self._seen_episode.zero_()  # episodes are counted anew

    def _check_fit(self) -> None:
        shape = (len(self.dof), 2 * len(self._ages))
        try:
            self._run(np.zeros(shape, dtype=np.float32))
        except (RuntimeError, TypeError, IndexError) as error:
            raise ValueError(
                f"NetworkActuators: the network does not take a NumPy array of shape {shape}, "
                f"[actuator, feature]: {error}. Choose history= to match its input."
            ) from error

    def _run(self, features: np.ndarray) -> np.ndarray:
        result = np.asarray(self._evaluate(features), dtype=np.float32).reshape(-1)
        if result.shape != (len(self.dof),):
            raise ValueError(
                f"NetworkActuators: the network gave {result.size} numbers for {len(self.dof)} actuators, "
                "but one effort per actuator is needed."
            )
        return result

    def before_substep(self, worlds: wp.array[int], state: State) -> None:
        """Evaluate the network, and exert its effort within the limits of the motor."""
        control, past = self._simulation.control, self._past.numpy()
        episodes = self._arrays.episode.numpy()
        fresh = (episodes != self._seen_episode.numpy())[self.world]
        self._seen_episode.assign(episodes)
        past[1:] = past[:-1].copy()
        past[0, 0] = control.joint_target_pos.numpy()[self.dof]
        past[0, 0] -= state.joint_q.numpy()[self._arrays.coord.numpy()]
        past[0, 1] = state.joint_qd.numpy()[self.dof]
        past[1:, :, fresh] = past[0][None, :, fresh]  # nothing is known of the time before a reset
        self._past.assign(past)
        errors = self._scales[0] * past[self._ages, 0].T
        speeds = self._scales[1] * past[self._ages, 1].T
        parts = (speeds, errors) if self._velocities_first else (errors, speeds)
        effort = self._scales[2] * self._run(np.ascontiguousarray(np.concatenate(parts, axis=1)))
        self._exert(worlds, state, effort)

    def _exert(self, worlds: wp.array[int], state: State, effort: np.ndarray) -> None:
        """Pass the efforts to the stage of `JointActuators`, as feedforward."""
        control = self._simulation.control
        effort_sum = control.joint_act.numpy().copy()
        effort_sum[self.dof] += effort
        self._feedforward.assign(effort_sum)
        command = _Command(control, self._feedforward)
        exert_worlds(worlds, self._arrays, state, command, self._model.device)


class _Command:
    """The arrays of a control that `exert_worlds` reads and writes."""

    def __init__(self, control: Control, act: wp.array):
        self.joint_target_pos, self.joint_target_vel = control.joint_target_pos, control.joint_target_vel
        self.joint_act, self.joint_f = act, control.joint_f


def _refuse_module(network: Any) -> None:
    """Raise for a module of PyTorch, which may not even be installed."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(network, torch.nn.Module):
        raise TypeError(
            f"NetworkActuators: network is a torch module ({type(network).__name__}), which takes tensors, "
            "but a function gets a NumPy array and returns one. Pass lambda features: "
            "module(torch.from_numpy(features)).detach().numpy(), or the file that "
            "torch.jit.script(module).save(path) writes."
        )


def _read_network(path: Path, width: int) -> Callable[[np.ndarray], Any]:
    """Return a function that evaluates the network of a file."""
    kind = _SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise ValueError(
            f"NetworkActuators: '{path}' ends on '{path.suffix}', but a network is a TorchScript file (.pt, "
            ".jit) or an ONNX file (.onnx)."
        )
    if not path.is_file():
        raise FileNotFoundError(f"NetworkActuators: there is no file '{path}'.")
    return _read_torch(path) if kind == "torch" else _read_onnx(path, width)


def _read_torch(path: Path) -> Callable[[np.ndarray], Any]:
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"NetworkActuators: '{path}' needs torch. Install pluriverse[learn], or export it to ONNX."
        ) from error
    try:
        module = torch.jit.load(str(path), map_location="cpu").eval()
    except RuntimeError as error:
        raise ValueError(
            f"NetworkActuators: '{path}' is no TorchScript file: {str(error).splitlines()[0]}. Save the "
            "network with torch.jit.script(network).save(path)."
        ) from error

    def evaluate(features: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return np.asarray(module(torch.from_numpy(features)).numpy())

    return evaluate


def _read_onnx(path: Path, width: int) -> Callable[[np.ndarray], Any]:
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            f"NetworkActuators: '{path}' needs onnxruntime. Install it: pip install onnxruntime."
        ) from error
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    name, shape = session.get_inputs()[0].name, session.get_inputs()[0].shape
    if not isinstance(shape[-1], str | None) and int(shape[-1]) != width:
        raise ValueError(
            f"NetworkActuators: '{path}' takes {shape[-1]} features per actuator, but history= makes {width}."
            " Choose history= to match its input."
        )

    def evaluate(features: np.ndarray) -> np.ndarray:
        return np.asarray(session.run(None, {name: features})[0])

    return evaluate
