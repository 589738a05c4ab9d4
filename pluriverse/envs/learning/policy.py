"""Policies as ONNX files: written from what was learnt, and run without PyTorch."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.envs.optional import import_optional

# Version of ONNX's operators: that of Gemm, Elu and arithmetic with broadcasting; any runtime since 2021.
_OPSET = 13
_IR_VERSION = 8
_METADATA = "pluriverse"


def export_policy(actor: Any, path: str | Path, description: dict[str, Any] | None = None) -> Path:
    """Write the mean action of a policy of rsl_rl as an ONNX file, for any number of environments at once.

    Args:
        actor: Policy (`Trainer.ppo.get_policy()`), a network of dense layers.
        path: File to write.
        description: Plain values that say what it is for, kept in the file.

    Returns:
        The path.

    Raises:
        ImportError: If the package onnx is not installed.
        TypeError: If the policy has layers of another kind.
    """
    onnx = import_optional("onnx", extra="learn", purpose="Policies as files")
    import torch

    helper, initial = onnx.helper, []
    nodes: list[Any] = []

    def constant(name: str, values: Any) -> str:
        array = np.ascontiguousarray(values.detach().cpu().numpy().astype(np.float32))
        initial.append(onnx.numpy_helper.from_array(array, name))
        return name

    value, width = "observations", None
    normalizer = actor.obs_normalizer
    if hasattr(normalizer, "_mean"):
        nodes.append(helper.make_node("Sub", [value, constant("mean", normalizer._mean)], ["centred"]))
        deviation = normalizer._std + normalizer.eps
        nodes.append(helper.make_node("Div", ["centred", constant("deviation", deviation)], ["normal"]))
        value = "normal"
    # An activation may be one object in several places, which `modules()` would list once.
    layers = list(actor.mlp._modules.values())
    activations = {torch.nn.ELU: "Elu", torch.nn.ReLU: "Relu", torch.nn.Tanh: "Tanh", torch.nn.SELU: "Selu"}
    for index, layer in enumerate(layers):
        result = "actions" if index == len(layers) - 1 else f"layer_{index}"
        if isinstance(layer, torch.nn.Linear):
            width = layer.in_features if width is None else width
            weight = constant(f"weight_{index}", layer.weight)
            bias = constant(f"bias_{index}", layer.bias)
            nodes.append(helper.make_node("Gemm", [value, weight, bias], [result], transB=1))
            outputs = layer.out_features
        elif type(layer) in activations:
            nodes.append(helper.make_node(activations[type(layer)], [value], [result]))
        elif isinstance(layer, torch.nn.Identity):
            nodes.append(helper.make_node("Identity", [value], [result]))
        else:
            raise TypeError(
                f"export_policy: a layer is a {type(layer).__name__}, but only dense layers with "
                f"{', '.join(kind.__name__ for kind in activations)} are written."
            )
        value = result
    if width is None:
        raise TypeError("export_policy: the policy has no dense layer.")
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info("observations", onnx.TensorProto.FLOAT, ["env", width])],
        [helper.make_tensor_value_info("actions", onnx.TensorProto.FLOAT, ["env", outputs])],
        initial,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], producer_name="pluriverse"
    )
    model.ir_version = _IR_VERSION
    helper.set_model_props(model, {_METADATA: json.dumps(description or {})})
    onnx.checker.check_model(model)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))
    return path


class OnnxPolicy:
    """A policy from an ONNX file, run by onnxruntime without PyTorch.

    Args:
        path: File.
        threads: CPU threads.

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: If onnxruntime is not installed.
        ValueError: If the file is no policy.
    """

    def __init__(self, path: str | Path, *, threads: int = 1) -> None:
        runtime = import_optional("onnxruntime", extra="learn", purpose="Policies from files")
        if not Path(path).is_file():
            raise FileNotFoundError(f"there is no policy '{path}'.")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has no common error
            raise ValueError(f"'{path}' is no ONNX file, or damaged: {error}") from error
        inputs = self._session.get_inputs()
        if len(inputs) != 1 or len(inputs[0].shape) != 2:
            raise ValueError(
                f"'{path}' takes {[(each.name, each.shape) for each in inputs]}, but a policy takes one "
                "array [env, number]."
            )
        self._input = inputs[0]
        properties = self._session.get_modelmeta().custom_metadata_map
        self.description: dict[str, Any] = json.loads(properties.get(_METADATA, "{}"))
        """Description of the task in the file."""

    @property
    def observation_count(self) -> int | None:
        """Numbers that it sees of an environment; None if it does not say."""
        width = self._input.shape[1]
        return width if isinstance(width, int) else None

    def __call__(self, observations: Any) -> np.ndarray:
        """Return actions, shape [env, action].

        Args:
            observations: What is seen, shape [env, number]; arrays of NumPy, or tensors on the CPU.

        Raises:
            ValueError: If the shape does not fit.
        """
        batch = np.ascontiguousarray(np.asarray(observations), dtype=np.float32)
        if batch.ndim != 2 or self.observation_count not in (None, batch.shape[1]):
            raise ValueError(
                f"OnnxPolicy: observations have shape {batch.shape}, but must have [env, "
                f"{self.observation_count}]"
                ": is the policy one of this task?"
            )
        return np.asarray(self._session.run(None, {self._input.name: batch})[0])
