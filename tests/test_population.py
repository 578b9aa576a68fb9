"""Populations of varied models, and what the robots' randomisation does to them."""

import copy
import math

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from conftest import quick_jit

from playground.errors import PlaygroundError
from playground.physics.base import Data
from playground.physics.engines import make_physics
from playground.physics.population import differing_fields, vary

LINKS = """
<mujoco>
  <option timestep="0.002" integrator="implicitfast">
    <flag autoreset="disable"/>
  </option>
  <worldbody>
    <body name="upper">
      <joint name="shoulder" axis="0 1 0" damping="0.02"/>
      <inertial pos="0.1 0 0" mass="{mass}" diaginertia="0.001 0.002 0.002"/>
      <body name="lower" pos="0.2 0 0">
        <joint name="elbow" axis="0 1 0" damping="0.01" ref="{ref}"/>
        <inertial pos="0.05 0 0" mass="0.2" diaginertia="0.001 0.001 0.001"/>
      </body>
    </body>
  </worldbody>
  <actuator><position name="elbow" joint="elbow" kp="{kp}"/></actuator>
  <sensor><subtreecom name="com" body="upper"/></sensor>
</mujoco>
"""
ROUNDING = 1e-5  # of float32 over 40 physics steps, at numbers of about 3


def links(mass=0.5, ref=0.0, kp=5.0) -> mujoco.MjModel:
    text = LINKS.format(mass=mass, ref=math.degrees(ref), kp=kp)
    return mujoco.MjModel.from_xml_string(text)


def all_fields(model) -> list[str]:
    return [n for n in dir(model) if hasattr(getattr(model, n, None), "shape")]


def changes(model, other) -> set[str]:
    return set(differing_fields([model, other], all_fields(model)))


def heavier(model, rng) -> None:
    model.body_mass[1] *= rng.uniform(1, 3)


def test_vary_draws_each_copy_anew_and_leaves_the_model_alone():
    model, untouched = links(), links()
    three, five = vary(model, 3, heavier, seed=7), vary(model, 5, heavier, seed=7)
    assert not changes(model, untouched)
    masses = [varied.body_mass[1] for varied in five]
    assert len(set(masses)) == 5 and all(0.5 <= m <= 1.5 for m in masses)
    assert not any(changes(a, b) for a, b in zip(three, five, strict=False))
    assert changes(three[0], vary(model, 1, heavier, seed=8)[0])


@pytest.mark.parametrize("change", ["mass", "ref", "kp"])
def test_derived_constants_are_those_of_a_model_compiled_so(change):
    def edit(model, rng):
        if change == "mass":
            model.body_mass[1] = 1.0
        elif change == "ref":
            model.qpos0[1] = 0.3
        else:
            model.actuator_gainprm[0, 0], model.actuator_biasprm[0, 1] = 7.0, -7.0

    varied = vary(links(), 1, edit, seed=0)[0]
    compiled = links(**{change: {"mass": 1.0, "ref": 0.3, "kp": 7.0}[change]})
    # The spring's rest position follows `ref` in a file; there are no springs here.
    for name in all_fields(varied):
        if name not in ("qpos_spring", "signature"):
            values = (np.asarray(getattr(m, name)) for m in (varied, compiled))
            np.testing.assert_allclose(*values, rtol=1e-12, atol=1e-15, err_msg=name)
    if change == "mass":
        assert {"body_subtreemass", "body_invweight0"} <= changes(links(), varied)


def drop(physics, index, fields=None) -> Data:
    """Lets a robot of each model in `index` fall for 40 physics steps."""

    def one(i, given):
        data = Data(
            time=jnp.zeros(()),
            qpos=jnp.array([0.2, -0.4]),
            qvel=jnp.array([1.0, 2.0]),
            sensordata=jnp.zeros(3),
            warmstart=jnp.zeros(2),
            model_index=i,
        )

        def step(data, _):
            return physics.step(data, jnp.array([0.5]), None, given), None

        return jax.lax.scan(step, data, length=2)[0]

    return quick_jit(jax.vmap(one))(jnp.asarray(index), fields)


def test_model_index_picks_the_model_and_fields_come_on_top(engine):
    def edit(model, rng):
        heavier(model, rng)
        model.body_ipos[2] += rng.uniform(0, 0.1, 3)
        model.dof_damping[:] *= rng.uniform(0.5, 2, 2)
        model.qpos0[1] += rng.uniform(-0.3, 0.3)

    models, name = vary(links(), 3, edit, seed=3), "actuator_gainprm"
    index, kp = [2, 0, 1, 0], [5.0, 4.0, 6.0, 5.0]
    gain = jnp.zeros((4, 1, 10)).at[:, 0, 0].set(jnp.array(kp))
    population = make_physics(models, engine, substeps=20, fields=[name])
    together = drop(population, index, {name: gain})
    for row, i in enumerate(index):
        own = copy.copy(models[i])
        own.actuator_gainprm[0, 0] = kp[row]
        alone = drop(make_physics(own, "native", substeps=20), [0])
        np.testing.assert_allclose(together.qpos[row], alone.qpos[0], atol=ROUNDING)
        tolerance = 10 * ROUNDING
        np.testing.assert_allclose(together.qvel[row], alone.qvel[0], atol=tolerance)
        if engine == "native":
            np.testing.assert_array_equal(together.qvel[row], alone.qvel[0])
    # Robots 1 and 3 share a model and differ in their gain alone.
    assert abs(together.qpos[1] - together.qpos[3]).max() > 0.01
    if engine == "native":
        plain = drop(population, index)
        np.testing.assert_array_equal(plain.qpos[::3], together.qpos[::3])


def test_population_must_be_one_machine():
    other = links()
    other.opt.timestep = 0.001
    with pytest.raises(PlaygroundError, match=r"population differ in opt\.timestep"):
        make_physics([links(), other], "native")
    one_joint = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>"
    )
    with pytest.raises(PlaygroundError, match="differ in nq, nv, nu, nbody"):
        make_physics([links(), one_joint], "native")
    with pytest.raises(PlaygroundError, match="at least one model"):
        make_physics([], "native")
    other = links()
    other.body_parentid[2] = 0
    with pytest.raises(PlaygroundError, match="'mjx' cannot vary body_parentid"):
        make_physics([links(), other], "mjx")
