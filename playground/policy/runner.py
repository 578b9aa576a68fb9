"""Runs a policy file, after checking that it is one."""

import dataclasses
import logging
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from playground.errors import PlaygroundError
from playground.policy.contract import Contract
from playground.policy.onnx_file import INPUT, OUTPUT

_log = logging.getLogger(__name__)

_UNREADABLE = (
    ort_errors.Fail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.InvalidProtobuf,
    ort_errors.NotImplemented,
    ort_errors.RuntimeException,
)


class OnnxFunction:
    """An ONNX file with one input row per output row, on one CPU thread.

    Attributes:
      n_obs: Numbers in an input row.
      n_act: Numbers in an output row.
      names: Of input and output.
      metadata: Of the file.
    """

    def __init__(self, path: str | Path):
        """Opens the file and runs it once.

        Raises:
          PlaygroundError: there is no such file, it is not ONNX, or its shapes are not
            [1 or N, n_obs] -> [1 or N, n_act].
        """
        self._session = session = _open(Path(path))
        self.metadata = dict(session.get_modelmeta().custom_metadata_map)
        inputs = session.get_inputs()
        shape = inputs[0].shape if len(inputs) == 1 else []
        if (
            len(shape) != 2
            or not isinstance(shape[1], int)
            or (isinstance(shape[0], int) and shape[0] != 1)
            or inputs[0].type != "tensor(float)"
        ):
            found = ", ".join(f"{i.name} {i.type} {i.shape}" for i in inputs)
            raise PlaygroundError(
                f"policy {path} must have one float input [1 or N, n_obs], has {found}"
            )
        outputs = [output.name for output in session.get_outputs()]
        self.names = inputs[0].name, OUTPUT if OUTPUT in outputs else outputs[0]
        self._one_by_one = isinstance(shape[0], int)
        self.n_obs: int = shape[1]
        # What a file declares of its output may be symbolic; what it returns is not.
        sample = self._run(np.zeros((1, self.n_obs), np.float32))
        if sample.ndim != 2 or len(sample) != 1 or sample.dtype != np.float32:
            raise PlaygroundError(
                f"policy {path} must return float [1 or N, n_act], returned "
                f"{sample.dtype} {list(sample.shape)} for one observation"
            )
        self.n_act: int = sample.shape[1]

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        """Returns actions [N, n_act] of observations [N, n_obs], or [n_act] of [n_obs].

        Raises:
          PlaygroundError: the observations have another width.
        """
        obs = np.asarray(obs, np.float32)
        if obs.ndim not in (1, 2) or obs.shape[-1] != self.n_obs:
            raise PlaygroundError(
                f"policy takes [{self.n_obs}] or [N, {self.n_obs}], "
                f"got observations {list(obs.shape)}"
            )
        rows = np.atleast_2d(obs)
        if self._one_by_one:
            actions = np.empty((len(rows), self.n_act), np.float32)
            for i, row in enumerate(rows):
                actions[i] = self._run(row[None])[0]
        else:
            actions = self._run(rows)
        return actions if obs.ndim == 2 else actions[0]

    def _run(self, rows: np.ndarray) -> np.ndarray:
        name, output = self.names
        return np.asarray(self._session.run([output], {name: rows})[0])


@dataclasses.dataclass(frozen=True, eq=False)
class OnnxPolicy:
    """A policy file that can be run: observations to actions.

    Attributes:
      path: The file.
      contract: What it promises.
      foreign: Whether the contract was assumed, the file having none.
    """

    path: Path
    contract: Contract
    foreign: bool
    _function: OnnxFunction

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        """Returns actions [N, n_act] of observations [N, n_obs], or [n_act] of [n_obs].

        Raises:
          PlaygroundError: the observations have another width.
        """
        return self._function(obs)

    def require(self, contract: Contract) -> None:
        """Checks that the policy fits what it is to run on.

        Raises:
          PlaygroundError: it does not; names every difference.
        """
        differences = self.contract.differences(contract)
        if differences:
            raise PlaygroundError(
                f"policy {self.path} does not fit: {'; '.join(differences)}"
            )


def load_policy(path: str | Path, published: Contract) -> OnnxPolicy:
    """Opens a policy file.

    Args:
      path: The file.
      published: The contract of a file that has none, if its size fits.

    Raises:
      PlaygroundError: the file cannot be read, or its contract is missing or broken.
    """
    function = OnnxFunction(path)
    size, published_size = (
        f"{each.n_obs} -> {each.n_act}" for each in (function, published)
    )
    foreign = not published.to_metadata().keys() & function.metadata.keys()
    if foreign:
        if size != published_size:
            raise PlaygroundError(
                f"policy {path} has no metadata and is {size}; without metadata only "
                f"the published layout {published_size} is known"
            )
        _log.warning(
            "%s has no metadata; read as the published layout %s", path, published_size
        )
        return OnnxPolicy(Path(path), published, True, function)
    contract = Contract.from_metadata(function.metadata)
    promised = f"{contract.n_obs} -> {contract.n_act}"
    if size != promised:
        raise PlaygroundError(f"policy {path} is {size}, its metadata says {promised}")
    if function.names != (INPUT, OUTPUT):
        raise PlaygroundError(
            f"policy {path} maps {' to '.join(function.names)}, not {INPUT} to {OUTPUT}"
        )
    return OnnxPolicy(Path(path), contract, False, function)


def _open(path: Path) -> onnxruntime.InferenceSession:
    if not path.is_file():
        raise PlaygroundError(f"no policy file {path}")
    if not path.stat().st_size:
        raise PlaygroundError(f"policy file {path} is empty")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # what it warns of, we did not write
    try:
        return onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0]
        raise PlaygroundError(f"policy {path} cannot be read: {reason}") from error
