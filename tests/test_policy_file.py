"""The policy file: written right, proved against Brax, refused when it is wrong."""

import dataclasses
import functools
import logging

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from brax.training.acme import running_statistics
from brax.training.agents.ppo import networks as ppo_networks
from flax import linen
from onnx import TensorProto, helper

from playground.errors import PlaygroundError
from playground.policy.contract import Channel, Contract, published_open_duck
from playground.policy.onnx_file import (
    ACTIVATIONS,
    Network,
    network_from_brax,
    read_metadata,
    write_onnx,
)
from playground.policy.runner import load_policy
from playground.policy.verify import verify_file

N_OBS, N_ACT = 101, 14
CLIP = 10.0
RANGES = ((-0.15, 0.15), (-0.2, 0.2), (-1.0, 1.0), *[(-0.5, 0.5)] * 4)
PUBLISHED = published_open_duck(
    [f"joint_{i}" for i in range(N_ACT)],
    np.linspace(-0.8, 1.4, N_ACT),
    [(f"command_{i}", "m/s", ends) for i, ends in enumerate(RANGES)],
)
TINY = dataclasses.replace(
    PUBLISHED,
    joints=("knee",),
    home_pose=(0.0,),
    observation=(Channel("gyro", 2, "rad/s", 1.0, (0.0, 0.0)),),
)


def tiny_network(**changes) -> Network:
    """Two numbers in, one out, no hidden layer."""
    values = {
        "mean": np.array([1.0, 2.0]),
        "std": np.array([2.0, 0.5]),
        "clip": 3.0,
        "kernels": (np.array([[0.5, 9.0], [0.1, 9.0]]),),
        "biases": (np.array([0.25, 9.0]),),
        "activation": "swish",
        "n_act": 1,
    }
    return Network(**(values | changes))


def brax_policy(activation: str, layers: tuple[int, ...], seed: int = 0):
    """Returns a network as trained, and its deterministic action by Brax."""
    sizes = {"state": N_OBS, "privileged_state": N_OBS + 7}
    networks = ppo_networks.make_ppo_networks(
        sizes,
        N_ACT,
        functools.partial(running_statistics.normalize, max_abs_value=CLIP),
        policy_hidden_layer_sizes=layers,
        activation=getattr(linen, activation),
        value_obs_key="privileged_state",
    )
    rng = np.random.default_rng(seed)
    shapes = {name: jnp.zeros(size) for name, size in sizes.items()}
    normalizer = running_statistics.init_state(shapes).replace(
        mean={n: jnp.asarray(rng.normal(0, 0.5, s), "f") for n, s in sizes.items()},
        std={
            n: jnp.asarray(10 ** rng.uniform(-2, 0, s), "f") for n, s in sizes.items()
        },
    )
    params = networks.policy_network.init(jax.random.PRNGKey(seed))
    for layer in params["params"].values():  # untrained ones are zero
        layer["bias"] = jnp.asarray(rng.normal(0, 0.2, layer["bias"].shape), "f")
    act = ppo_networks.make_inference_fn(networks)((normalizer, params), True)

    @jax.jit
    def reference(obs):
        with jax.default_matmul_precision("highest"):
            return act({"state": obs}, None)[0]

    return network_from_brax(normalizer, params, activation, CLIP), reference


def foreign_file(path, n_obs=N_OBS, n_act=N_ACT, batch="N", names=("x", "y")):
    """Writes a linear policy as others might: tanh of every third observation."""
    weights = np.zeros((n_obs, n_act), np.float32)
    weights[3 * np.arange(n_act), np.arange(n_act)] = 1.0
    tensor = functools.partial(
        helper.make_tensor_value_info, elem_type=TensorProto.FLOAT
    )
    model = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("MatMul", [names[0], "w"], ["h"]),
                helper.make_node("Tanh", ["h"], [names[1]]),
            ],
            "foreign",
            [tensor(names[0], shape=[batch, n_obs])],
            [tensor(names[1], shape=[batch, n_act])],
            [onnx.numpy_helper.from_array(weights, "w")],
        ),
        opset_imports=[helper.make_opsetid("", 11)],
        ir_version=6,
    )
    onnx.save(model, str(path))
    return path


def test_hand_computed_action(tmp_path):
    path = tmp_path / "tiny.onnx"
    write_onnx(path, tiny_network(), TINY)
    policy = load_policy(path, PUBLISHED)
    # (2 - 1) / 2 = 0.5; (1.75 - 2) / 0.5 = -0.5; 0.25 - 0.05 + 0.25 = 0.45
    np.testing.assert_allclose(policy([2.0, 1.75]), np.tanh([0.45]), atol=1e-6)
    # Both clip at 3: 1.5 - 0.3 + 0.25 = 1.45
    np.testing.assert_allclose(policy([99.0, -99.0]), np.tanh([1.45]), atol=1e-6)
    assert policy(np.zeros((5, 2))).shape == (5, 1)
    assert policy(np.zeros((5, 2))).dtype == np.float32
    assert policy.contract == TINY and not policy.foreign
    policy.require(TINY)
    with pytest.raises(PlaygroundError, match=r"goose.*0\.5"):
        policy.require(dataclasses.replace(TINY, robot="goose", action_scale=0.5))


@pytest.mark.parametrize("activation", ACTIVATIONS)
# The last is deep enough for hidden_10, which must not come before hidden_2.
@pytest.mark.parametrize("layers", [(), (32,), (256, 128, 128), (8,) * 11], ids=len)
def test_file_equals_brax(tmp_path, activation, layers):
    network, reference = brax_policy(activation, layers)
    path = tmp_path / "policy with spaces.onnx"
    write_onnx(path, network, PUBLISHED)
    errors = verify_file(path, reference, N_OBS)
    assert list(errors) == [0.1, 1.0, 100.0] and max(errors.values()) < 1e-5


def test_verify_tells_a_wrong_file(tmp_path):
    path = tmp_path / "tiny.onnx"
    write_onnx(path, tiny_network(), TINY)
    right = load_policy(path, PUBLISHED)
    assert max(verify_file(path, right, 2).values()) == 0.0
    for wrong, told in (
        (lambda obs: right(obs) + 1e-4, "differs from its network"),
        (lambda obs: right(obs) * np.nan, "differs from its network"),
        (lambda obs: right(obs)[:, :0], "returns"),
    ):
        with pytest.raises(PlaygroundError, match=told):
            verify_file(path, wrong, 2)
    with pytest.raises(PlaygroundError, match="takes 2 numbers, not 3"):
        verify_file(path, right, 3)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_old_runtimes_can_read_it(tmp_path, activation):
    path = tmp_path / "p.onnx"
    write_onnx(path, brax_policy(activation, (32,))[0], PUBLISHED)
    model = onnx.load(str(path))
    assert model.ir_version <= 9
    assert [(o.domain, o.version <= 17) for o in model.opset_import] == [("", True)]
    (inputs,), (outputs,) = model.graph.input, model.graph.output
    assert (inputs.name, outputs.name) == ("obs", "continuous_actions")
    for value, width in ((inputs, N_OBS), (outputs, N_ACT)):
        batch, last = value.type.tensor_type.shape.dim
        assert batch.dim_param and last.dim_value == width


def test_contract_survives_the_file(tmp_path):
    contract = dataclasses.replace(
        TINY, rate_limit=None, versions={"jax": "0.9"}, config_hash="ab12", scene="flat"
    )
    write_onnx(tmp_path / "p.onnx", tiny_network(), contract)
    metadata = read_metadata(tmp_path / "p.onnx")
    assert metadata == contract.to_metadata()
    assert Contract.from_metadata(metadata) == contract
    key = next(key for key in metadata if key.endswith("joints"))
    with pytest.raises(PlaygroundError, match="joints"):
        Contract.from_metadata({k: v for k, v in metadata.items() if k != key})
    for wrong in ("[1, 2]", '["knee"', '"knee"', ""):
        with pytest.raises(PlaygroundError, match="joints"):
            Contract.from_metadata(metadata | {key: wrong})


def _channel(row: int, **changes) -> tuple[Channel, ...]:
    channels = list(PUBLISHED.observation)
    channels[row] = dataclasses.replace(channels[row], **changes)
    return tuple(channels)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"robot": "goose"}, ["goose"]),
        ({"joints": (*PUBLISHED.joints[:-1], "tail")}, ["tail"]),
        ({"home_pose": (*PUBLISHED.home_pose[:-1], 1.5)}, ["1.5"]),
        ({"action_scale": 0.5}, ["0.5"]),
        ({"control_period": 0.01}, ["0.01"]),
        ({"phase_steps": 30}, ["30"]),
        ({"observation": _channel(0, name="spin")}, ["spin"]),
        ({"observation": _channel(4, scale=1.0)}, ["joint_velocity"]),
        ({"observation": PUBLISHED.observation[:-1]}, ["phase"]),
        ({"command_ranges": ((-0.3, 0.3), *RANGES[1:])}, ["0.3"]),
        ({"command_names": ("speed", *PUBLISHED.command_names[1:])}, ["speed"]),
        ({"versions": {"jax": "1"}, "config_hash": "x", "scene": "s"}, []),
        ({"home_pose": tuple(x + 1e-7 for x in PUBLISHED.home_pose)}, []),
        ({"observation": _channel(0, noise=(1.0,) * 3)}, []),
    ],
)
def test_each_difference_is_told(changes, told):
    lines = dataclasses.replace(PUBLISHED, **changes).differences(PUBLISHED)
    assert len(lines) == len(told)
    for word in told:
        assert any(word in line for line in lines)


@pytest.mark.parametrize("batch", ["N", 1])
@pytest.mark.parametrize("names", [("x", "y"), ("obs", "continuous_actions")])
def test_foreign_duck_runs(tmp_path, caplog, batch, names):
    path = foreign_file(tmp_path / "foreign.onnx", batch=batch, names=names)
    with caplog.at_level(logging.WARNING):
        policy = load_policy(path, PUBLISHED)
    assert "no metadata" in caplog.text
    assert policy.foreign and policy.contract == PUBLISHED
    obs = np.random.default_rng(0).normal(size=(6, N_OBS)).astype(np.float32)
    expected = np.tanh(obs[:, : 3 * N_ACT : 3])
    np.testing.assert_allclose(policy(obs), expected, atol=1e-6)
    np.testing.assert_allclose(policy(obs[0]), expected[0], atol=1e-6)
    assert policy(obs[:0]).shape == (0, N_ACT)
    for wrong in (obs[:, 1:], obs[None], 1.0):
        with pytest.raises(PlaygroundError, match="got observations"):
            policy(wrong)


def test_other_foreign_files_are_refused(tmp_path):
    path = foreign_file(tmp_path / "a.onnx", n_obs=60)
    with pytest.raises(PlaygroundError, match="no metadata and is 60 -> 14"):
        load_policy(path, PUBLISHED)
    with pytest.raises(PlaygroundError, match=r"\[1 or N, n_obs\]"):
        load_policy(foreign_file(tmp_path / "b.onnx", batch=4), PUBLISHED)


def test_metadata_that_fits_nothing_is_refused(tmp_path):
    path = foreign_file(tmp_path / "p.onnx", names=("x", "continuous_actions"))
    model = onnx.load(str(path))
    published = PUBLISHED.to_metadata()
    for metadata, told in (
        (TINY.to_metadata(), "is 101 -> 14, its metadata says 2 -> 1"),
        (published, "not obs to continuous_actions"),
        (dict(list(published.items())[1:]), "lacks"),
    ):
        helper.set_model_props(model, metadata)
        onnx.save(model, str(path))
        with pytest.raises(PlaygroundError, match=told):
            load_policy(path, PUBLISHED)


@pytest.mark.parametrize("damage", ["cut", "short", "text", "empty", "none", "folder"])
def test_unreadable_files_are_refused(tmp_path, damage):
    path = tmp_path / damage
    write_onnx(tmp_path / "good.onnx", brax_policy("swish", (32,))[0], PUBLISHED)
    good = (tmp_path / "good.onnx").read_bytes()
    content = {"cut": good[:9000], "short": good[:-1], "text": b"x" * 99, "empty": b""}
    if damage in content:
        path.write_bytes(content[damage])
    elif damage == "folder":
        path.mkdir()
    told = {"empty": "is empty", "none": "no policy file", "folder": "no policy file"}
    with pytest.raises(PlaygroundError, match=told.get(damage, "cannot be read")):
        load_policy(path, PUBLISHED)
    if damage != "empty":  # which is a valid, blank protobuf
        with pytest.raises(PlaygroundError, match="cannot read"):
            read_metadata(path)


def test_nothing_is_overwritten_unasked(tmp_path):
    path = tmp_path / "p.onnx"
    path.write_text("precious")
    with pytest.raises(PlaygroundError, match="exists"):
        write_onnx(path, tiny_network(), TINY)
    assert path.read_text() == "precious"
    write_onnx(path, tiny_network(), TINY, overwrite=True)
    load_policy(path, PUBLISHED)
    with pytest.raises(PlaygroundError, match="no folder"):
        write_onnx(tmp_path / "nowhere" / "p.onnx", tiny_network(), TINY)
    with pytest.raises(PlaygroundError, match="its contract 101 -> 14"):
        write_onnx(tmp_path / "q.onnx", tiny_network(), PUBLISHED)
    assert [p.name for p in tmp_path.iterdir()] == ["p.onnx"]


def test_networks_that_cannot_be_written_are_refused():
    with pytest.raises(PlaygroundError, match=r"activation.*gelu.*allowed: elu, relu"):
        tiny_network(activation="gelu")
    with pytest.raises(PlaygroundError, match="do not lead"):
        tiny_network(n_act=2)
    with pytest.raises(PlaygroundError, match="not finite"):
        tiny_network(mean=np.array([np.nan, 0.0]))
    layer = {"kernel": np.zeros((2, 2)), "bias": np.zeros(2)}
    statistics = running_statistics.init_state(jnp.zeros(2))
    for name, broken in (("LayerNorm_0", {"scale": 1}), ("hidden_1", {"kernel": 1})):
        with pytest.raises(PlaygroundError, match=name):
            params = {"params": {"hidden_0": layer, name: broken}}
            network_from_brax(statistics, params, "elu", 5.0)
