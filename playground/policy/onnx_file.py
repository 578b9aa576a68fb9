"""Writes a policy network as an ONNX file, straight from its weights.

    obs -> (obs - mean) / std -> clip -> layers -> tanh -> continuous_actions

No tracer and no other framework: every node below is one the trained network has. All
of it is float32 and in the network's own order of operations, because the rounding
of the two then agrees best.
"""

import dataclasses
import itertools
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from playground.errors import PlaygroundError, unknown
from playground.policy.contract import Contract

if TYPE_CHECKING:
    import onnx

INPUT, OUTPUT = "obs", "continuous_actions"
# Robots carry old runtimes: these are what onnxruntime 1.12 reads and above.
OPSET, IR_VERSION = 17, 8


class Graph:
    """A list of ONNX operations being written down; values go by name."""

    def __init__(self) -> None:
        """Starts empty."""
        self.nodes: list[tuple[str, tuple[str, ...], str]] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, name: str, value: Any) -> str:
        """Holds a float32 constant and returns its name."""
        self.constants[name] = np.asarray(value, np.float32)
        return name

    def add(self, op: str, *inputs: str, output: str | None = None) -> str:
        """Adds an operation and returns the name of its result."""
        output = output or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append((op, inputs, output))
        return output


def _swish(graph: Graph, x: str) -> str:
    # x / (1 + exp(-x)) rounds as JAX's does; onnxruntime's Sigmoid is an approximation
    # whose error, times x, is four times larger.
    exp = graph.add("Exp", graph.add("Neg", x))
    return graph.add("Div", x, graph.add("Add", exp, graph.constant("one", 1.0)))


ACTIVATIONS: dict[str, Callable[[Graph, str], str]] = {
    "swish": _swish,
    "elu": lambda graph, x: graph.add("Elu", x),
    "relu": lambda graph, x: graph.add("Relu", x),
    "tanh": lambda graph, x: graph.add("Tanh", x),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Network:
    """The weights of a Brax PPO policy: an MLP to (location, scale) of each action.

    Attributes:
      mean: [n_obs] what observations are centred on.
      std: [n_obs] what they are divided by.
      clip: Normalised observations are clipped to plus or minus this.
      kernels: One [n_in, n_out] a layer; the last is [n_in, 2 n_act].
      biases: One [n_out] a layer.
      activation: A key of `ACTIVATIONS`; follows every layer but the last.
      n_act: Numbers in an action, which is tanh(location).
    """

    mean: np.ndarray
    std: np.ndarray
    clip: float
    kernels: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    activation: str
    n_act: int

    def __post_init__(self):
        if self.activation not in ACTIVATIONS:
            raise unknown("activation for ONNX", self.activation, ACTIVATIONS)
        widths = [len(self.mean), *(kernel.shape[-1] for kernel in self.kernels)]
        wanted = [*itertools.pairwise(widths)]
        shapes = [kernel.shape for kernel in self.kernels]
        bias_shapes = [(kernel.shape[-1],) for kernel in self.kernels]
        if (
            shapes != wanted
            or [bias.shape for bias in self.biases] != bias_shapes
            or self.std.shape != self.mean.shape
            or widths[-1] != 2 * self.n_act
        ):
            raise PlaygroundError(
                f"network layers {shapes} do not lead from {len(self.mean)} observed "
                f"numbers to location and scale of {self.n_act} actions"
            )
        arrays = (self.mean, self.std, *self.kernels, *self.biases)
        if not all(np.isfinite(array).all() for array in arrays):
            raise PlaygroundError("network holds numbers that are not finite")

    @property
    def n_obs(self) -> int:
        """Numbers in an observation."""
        return len(self.mean)


def network_from_brax(
    normalizer_params: Any,
    policy_params: Mapping[str, Any],
    activation: str,
    clip: float,
    observation: str = "state",
) -> Network:
    """Collects a network from what Brax trains.

    Args:
      normalizer_params: Brax's `RunningStatisticsState`, over an array or a dict.
      policy_params: Flax parameters of the policy of `make_ppo_networks`.
      activation: Name of the activation it was trained with.
      clip: The normaliser's `max_abs_value`.
      observation: Which observation the policy sees, if they are a dict.

    Raises:
      PlaygroundError: the network is not one that can be written.
    """
    mean, std = normalizer_params.mean, normalizer_params.std
    if isinstance(mean, Mapping):
        mean, std = mean[observation], std[observation]
    layers: dict[int, Mapping[str, Any]] = {}
    for name, layer in policy_params["params"].items():
        number = re.fullmatch(r"hidden_(\d+)", name)
        if number is None or set(layer) != {"kernel", "bias"}:
            raise PlaygroundError(
                f"policy layer '{name}' ({', '.join(layer)}) has no ONNX form here"
            )
        layers[int(number[1])] = layer
    if not layers:
        raise PlaygroundError("policy has no layers")
    ordered = [layers[number] for number in sorted(layers)]
    kernels = tuple(np.asarray(layer["kernel"], np.float32) for layer in ordered)
    return Network(
        mean=np.asarray(mean, np.float32),
        std=np.asarray(std, np.float32),
        clip=clip,
        kernels=kernels,
        biases=tuple(np.asarray(layer["bias"], np.float32) for layer in ordered),
        activation=activation,
        n_act=kernels[-1].shape[-1] // 2,
    )


def write_onnx(
    path: str | Path, network: Network, contract: Contract, overwrite: bool = False
) -> None:
    """Writes the deterministic policy and its contract; all of the file or nothing.

    Args:
      path: The file to make; its folder must exist.
      network: The policy.
      contract: Goes into the file's metadata.
      overwrite: Whether a file that is there may be replaced.

    Raises:
      PlaygroundError: the file exists, its folder does not, or the network does not
        have the contract's size.
    """
    import onnx  # takes a second, which only exports should pay

    path = Path(path)
    if (network.n_obs, network.n_act) != (contract.n_obs, contract.n_act):
        raise PlaygroundError(
            f"network is {network.n_obs} -> {network.n_act}, "
            f"its contract {contract.n_obs} -> {contract.n_act}"
        )
    if path.exists() and not overwrite:
        raise PlaygroundError(
            f"{path} exists already; it is not overwritten unless asked"
        )
    if not path.parent.is_dir():
        raise PlaygroundError(f"no folder {path.parent} to write {path.name} to")
    model = _model(network)
    onnx.helper.set_model_props(model, contract.to_metadata())
    onnx.checker.check_model(model, full_check=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(model.SerializeToString())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_metadata(path: str | Path) -> dict[str, str]:
    """Returns the metadata of an ONNX file.

    Raises:
      PlaygroundError: no such file, or it is not ONNX.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(str(path), load_external_data=False)
    except (OSError, DecodeError) as error:
        raise PlaygroundError(f"cannot read policy {path}: {error}") from error
    return {prop.key: prop.value for prop in model.metadata_props}


def _write_down(network: Network) -> Graph:
    graph = Graph()
    centred = graph.add("Sub", INPUT, graph.constant("mean", network.mean))
    x = graph.add("Div", centred, graph.constant("std", network.std))
    low = graph.constant("low", -network.clip)
    x = graph.add("Clip", x, low, graph.constant("high", network.clip))
    last = len(network.kernels) - 1
    for i, (kernel, bias) in enumerate(
        zip(network.kernels, network.biases, strict=True)
    ):
        if i == last:  # the scale is for exploring
            kernel, bias = kernel[:, : network.n_act], bias[: network.n_act]
        kernel_name = graph.constant(f"kernel_{i}", kernel)
        x = graph.add("Gemm", x, kernel_name, graph.constant(f"bias_{i}", bias))
        if i < last:
            x = ACTIVATIONS[network.activation](graph, x)
    graph.add("Tanh", x, output=OUTPUT)
    return graph


def _model(network: Network) -> "onnx.ModelProto":
    from onnx import TensorProto, helper, numpy_helper

    def tensor(name: str, width: int):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", width])

    graph = _write_down(network)
    return helper.make_model(
        helper.make_graph(
            [
                helper.make_node(op, inputs, [output], name=output)
                for op, inputs, output in graph.nodes
            ],
            "policy",
            [tensor(INPUT, network.n_obs)],
            [tensor(OUTPUT, network.n_act)],
            [
                numpy_helper.from_array(np.ascontiguousarray(value), name)
                for name, value in graph.constants.items()
            ],
        ),
        producer_name="playground",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
