"""What the randomisation of a robot changes, and what comes of it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from playground.physics.engines import make_physics
from playground.physics.population import differing_fields
from playground.tasks.config import RandomizationConfig
from playground.tasks.randomization import randomized_models

# What no draw changes; one quantity at a time is then set to a range.
STILL = RandomizationConfig(
    models=2,
    friction=(0.6, 0.6),
    mass=(1.0, 1.0),
    com=(0.0, 0.0),
    armature=(1.0, 1.0),
    frictionloss=(1.0, 1.0),
    kp=(1.0, 1.0),
    joint_offset=(0.0, 0.0),
)


def changes(model, other) -> set[str]:
    """Returns the names of all array fields in which two models differ."""
    arrays = [n for n in dir(model) if hasattr(getattr(model, n, None), "shape")]
    return set(differing_fields([model, other], arrays))


def randomized(duck, **ranges):
    return randomized_models(duck, dataclasses.replace(STILL, **ranges), seed=5)


# Quantity -> range, the fields it is written to, and those derived from them.
TARGETS = {
    "friction": ((0.2, 0.3), {"geom_friction"}, set()),
    "mass": (
        (0.8, 0.9),
        {"body_mass", "body_inertia"},
        {"body_subtreemass", "body_invweight0", "dof_invweight0", "dof_M0"}
        | {"actuator_acc0", "cam_poscom0", "light_poscom0", "dof_length"},
    ),
    "com": (
        (0.01, 0.02),
        {"body_ipos"},
        {"body_invweight0", "dof_invweight0", "dof_M0", "actuator_acc0"}
        | {"cam_poscom0", "light_poscom0", "dof_length"},
    ),
    "armature": (
        (1.1, 1.2),
        {"dof_armature"},
        {"body_invweight0", "dof_invweight0", "dof_M0", "actuator_acc0", "dof_length"},
    ),
    "frictionloss": ((0.5, 0.6), {"dof_frictionloss"}, set()),
    "kp": ((0.8, 0.9), {"actuator_gainprm", "actuator_biasprm"}, set()),
    "joint_offset": (
        (0.02, 0.03),
        {"qpos0"},
        {"body_invweight0", "dof_invweight0", "dof_M0", "actuator_acc0"}
        | {"cam_poscom0", "light_poscom0", "dof_length", "actuator_length0"},
    ),
}


@pytest.mark.parametrize("quantity", TARGETS)
def test_randomisation_writes_to_its_target_alone(duck, quantity):
    span, written, derived = TARGETS[quantity]
    base, varied = duck.model, randomized(duck, **{quantity: span})
    for model in varied:
        assert written <= changes(base, model) <= written | derived
    assert changes(*varied) >= written
    for name in written:
        was, now = (np.array(getattr(m, name)) for m in (base, varied[0]))
        hit = was != now
        rows = {
            "friction": [base.geom("floor").id],
            "mass": range(1, base.nbody),
            "com": [duck.base_body],
            "kp": range(base.nu),
            "joint_offset": duck.qpos_index,
        }.get(quantity, duck.dof_index)
        assert set(np.nonzero(hit)[0]) == set(rows), name
        # Each joint and each link has a draw of its own.
        added = quantity in ("com", "joint_offset")
        rate = (now - was)[hit] if added else now[hit] / was[hit]
        low, high = span
        if quantity == "friction":
            low, high = low / 0.6, high / 0.6
        assert (low <= rate).all() and (rate <= high).all()
        assert len(np.unique(np.round(rate, 12))) >= len(rows)


def act(duck, models, qpos, ctrl, steps, push=None):
    """[N] robots, one of each model, after some control steps: what they sense."""
    physics = make_physics(models, "native", substeps=10, push_body="trunk")
    index = jnp.arange(len(models))
    qpos = jnp.broadcast_to(
        jnp.asarray(qpos, jnp.float32), (len(models), duck.model.nq)
    )
    qvel, ctrl = jnp.zeros(duck.model.nv), jnp.asarray(ctrl, jnp.float32)
    data = jax.vmap(physics.init, (0, None, None, 0))(qpos, qvel, ctrl, index)
    push = jnp.zeros(6) if push is None else jnp.asarray(push)

    def step(data, _):
        return jax.vmap(lambda d: physics.step(d, ctrl, push))(data), None

    data = jax.jit(lambda d: jax.lax.scan(step, d, length=steps)[0])(data)
    return jax.vmap(duck.sense)(data)


def home_in_air(duck):
    qpos = duck.home_qpos.copy()
    qpos[2] += 2.0
    return qpos


def test_heavier_robots_weigh_more(duck):
    models = [duck.model, *randomized(duck, mass=(1.2, 1.2))]
    sensed = act(duck, models, duck.home_qpos, duck.home_pose, 100)
    force = sensed["left_foot_force"] + sensed["right_foot_force"]
    np.testing.assert_allclose(force[:, 0] / force[0, 0], [1, 1.2, 1.2], rtol=0.01)
    assert float(force[0, 0]) == pytest.approx(2.107 * 9.81, rel=0.02)


def test_lower_friction_slides(duck):
    models = [duck.model, *randomized(duck, friction=(0.05, 0.05))]
    sensed = act(duck, models, duck.home_qpos, duck.home_pose, 40, [0, 2.0, 0, 0, 0, 0])
    moved = sensed["left_foot_pos"][:, 1] - sensed["left_foot_pos"][0, 1]
    assert (moved[1:] > 0.05).all()


def test_moved_centre_of_mass_moves_the_whole_one(duck):
    models = [duck.model, *randomized(duck, com=(0.02, 0.02))]
    com = act(duck, models, home_in_air(duck), duck.home_pose, 0)["com"]
    share = duck.model.body_mass[duck.base_body] / duck.model.body_mass.sum()
    np.testing.assert_allclose(
        com[1:] - com[0], np.full((2, 3), 0.02 * share), atol=1e-6
    )


def test_armature_slows_and_friction_holds_joints(duck):
    head = duck.joints.index("head_yaw")
    ctrl = duck.home_pose.copy()
    ctrl[head] += 0.5
    models = [duck.model, *randomized(duck, armature=(2.0, 2.0))]
    speed = act(duck, models, home_in_air(duck), ctrl, 1).joint_velocity[:, head]
    assert (speed[1:] < 0.8 * speed[0]).all()
    # 13.37 N.m/rad x 0.004 rad is less than 0.068 N.m, and more than half of it.
    ctrl[head] = duck.home_pose[head] + 0.004
    models = [duck.model, *randomized(duck, frictionloss=(0.5, 0.5))]
    moved = act(duck, models, home_in_air(duck), ctrl, 10).joint_position[:, head]
    moved = moved - duck.home_pose[head]
    assert abs(moved[0]) < 5e-4 and (moved[1:] > 1e-3).all()


def test_stiffness_scales_the_torque(duck):
    models = [duck.model, *randomized(duck, kp=(0.5, 0.5))]
    qpos, ctrl = home_in_air(duck), duck.home_pose + 0.1
    torque = act(duck, models, qpos, ctrl, 0).joint_torque
    expected = duck.servo.kp * 0.1 * np.array([[1.0], [0.5], [0.5]])
    np.testing.assert_allclose(torque, np.tile(expected, duck.model.nu), atol=1e-5)


def test_joint_offset_is_an_error_of_the_encoders_zero(duck):
    models = [duck.model, *randomized(duck, joint_offset=(0.01, 0.03))]
    offsets = np.stack([m.qpos0 - duck.model.qpos0 for m in models])
    assert (abs(offsets[1:, duck.qpos_index]) >= 0.01).all()
    # The same place, though the encoders differ by the offset ...
    there = act(duck, models, home_in_air(duck) + offsets, duck.home_pose, 0)
    for name in ("left_foot_pos", "right_foot_quat", "head_orientation"):
        np.testing.assert_allclose(
            there[name], np.tile(there[name][0], (3, 1)), atol=1e-6
        )
    expected = duck.home_pose + offsets[:, duck.qpos_index]
    np.testing.assert_allclose(there.joint_position, expected, atol=1e-6)
    # ... and another place where the encoders agree.
    here = act(duck, models, home_in_air(duck), duck.home_pose, 0)["left_foot_pos"]
    assert (np.linalg.norm(here[1:] - here[0], axis=1) > 1e-3).all()
