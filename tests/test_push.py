"""Pushes deliver the impulse asked, at the centre of mass of the body named."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from conftest import quick_jit

from playground.errors import PlaygroundError
from playground.physics.engines import make_physics
from playground.physics.push import push_fraction

CRATE = """
<mujoco>
  <option timestep="0.002" gravity="0 0 0" integrator="implicitfast"/>
  <worldbody>
    <body name="crate">
      <freejoint/>
      <inertial pos="0.05 -0.03 0.02" mass="2.5" diaginertia="0.02 0.03 0.04"/>
      <body name="frame"><site name="mark"/></body>
    </body>
  </worldbody>
  <sensor><framepos name="mark" objtype="site" objname="mark"/></sensor>
</mujoco>
"""
ROUNDING = 2e-6  # of float32 over some steps, at numbers of about 1


# Seconds from the first control step; nothing here is a whole number of steps.
BEGINS = np.array([0.0, 0.0, 0.0007, 0.0131, 0.02, 0.0333])
LASTS = np.array([0.0013, 0.02, 0.004, 0.0177, 0.05, 0.1003])


def crate(engine: str, **options):
    return make_physics(mujoco.MjModel.from_xml_string(CRATE), engine, **options)


def test_push_delivers_its_impulse_at_the_centre_of_mass(engine):
    physics = crate(engine, substeps=10, push_body="crate")
    impulse = jnp.array([0.3, -0.5, 0.2])

    def travel(begin, duration):
        data = physics.init(physics.model.qpos0, jnp.zeros(6), jnp.zeros(0))

        def step(data, k):
            since = k * physics.control_period - begin
            share = push_fraction(since, duration, 10, 0.002)
            force = jnp.concatenate([impulse / duration, jnp.zeros(3)])
            data = physics.step(data, jnp.zeros(0), share[:, None] * force)
            return data, data.qvel

        return jax.lax.scan(step, data, jnp.arange(10))[1]

    qvel = quick_jit(jax.vmap(travel))(jnp.asarray(BEGINS), jnp.asarray(LASTS))
    speed = np.asarray(impulse) / 2.5
    np.testing.assert_allclose(qvel[:, -1, :3], np.tile(speed, (6, 1)), atol=ROUNDING)
    # No spin: it acts at the centre of mass, which is not the body's origin.
    np.testing.assert_allclose(qvel[:, :, 3:], 0, atol=ROUNDING)
    for row, over in zip(qvel, BEGINS + LASTS, strict=True):
        after = row[int(np.ceil(over / 0.02)) :]
        np.testing.assert_allclose(after, np.tile(after[0], (len(after), 1)), atol=1e-7)


def test_push_acts_on_the_named_body_of_a_robot(duck):
    physics = make_physics(duck.model, "native", substeps=10, push_body="head")
    home = jnp.asarray(duck.home_pose, jnp.float32)
    qpos = jnp.asarray(duck.home_qpos, jnp.float32).at[2].add(5.0)

    def go(force):
        data = physics.init(qpos, jnp.zeros(duck.model.nv), home)
        for push in (force, jnp.zeros(6)):
            data = physics.step(data, home, push)
        return duck.sense(data)

    pushed, free = go(jnp.array([4.0, 0, 0, 0, 0, 0])), go(jnp.zeros(6))
    gained = pushed["com_linvel"] - free["com_linvel"]
    speed = 4.0 * 0.02 / duck.model.body_mass.sum()
    # Momentum is kept to the order of the step while the robot bends.
    np.testing.assert_allclose(gained, [speed, 0, 0], atol=1e-3 * speed)
    # The head is above the centre of mass of the whole: the robot tips forward.
    assert pushed["global_angvel"][1] > free["global_angvel"][1] + 0.1


def test_wrong_pushes_are_told(engine):
    with pytest.raises(PlaygroundError, match=r"unknown body 'leg'.*allowed: crate"):
        crate(engine, push_body="leg")
    with pytest.raises(PlaygroundError, match=r"'frame' has no mass .*massive: crate"):
        crate(engine, push_body="frame")
    physics = crate(engine)
    data = crate("native").init(physics.model.qpos0, jnp.zeros(6), jnp.zeros(0))
    with pytest.raises(PlaygroundError, match="needs `push_body`"):
        physics.step(data, jnp.zeros(0), jnp.zeros(6))
