"""Records one pushed robot, step by step: what it senses and does, and how it fared."""

import dataclasses
import math
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from playground.controllers.balance.criteria import (
    centre_of_pressure,
    low_pass,
    zero_moment_point,
)
from playground.controllers.balance.perception import LEG, SIDES
from playground.controllers.balance.support import signed_margin
from playground.experiments.push.cases import Cases
from playground.experiments.push.trial import Push, Trial, TrialStep
from playground.experiments.push.trials import PushTrials, stack_gains

# Differences of velocities show every rattle of the contacts: they are smoothed with
# this time constant, s, by which the zero moment point then lags.
_SMOOTHING = 0.01
# Joints whose torques are written down.
_WRITTEN = ("hip_roll", "hip_pitch", "ankle_pitch", "ankle_roll")


@flax.struct.dataclass
class Sample:
    """One control step; world frame, [T] of each in a record.

    Attributes:
      time: s since the push began, of all that is sensed; negative before.
      qpos: [nq] at the end of the step.
      com: [3] centre of mass, m.
      velocity: [3] of the centre of mass, m/s.
      floor: height of the lower sole, m.
      capture: [2] capture point as the controller has it, m.
      pressure: [2] centre of pressure, m; NaN while both feet are in the air.
      margin: m, of the capture point inside the soles on the floor; negative outside,
        NaN where they span no area.
      lean: rad, of the trunk.
      torque: [2, 5] N·m of the legs, in the order of `LEG`.
      load: [2] N on each foot.
      swing: the foot in the air, 0 or 1; -1: both stand.
      steps: begun so far.
      impulse: [3] N·s that the push gave in this step.
      stands: whether it would count as recovered now.
      fallen: whether it ever was down.
    """

    time: jax.Array
    qpos: jax.Array
    com: jax.Array
    velocity: jax.Array
    floor: jax.Array
    capture: jax.Array
    pressure: jax.Array
    margin: jax.Array
    lean: jax.Array
    torque: jax.Array
    load: jax.Array
    swing: jax.Array
    steps: jax.Array
    impulse: jax.Array
    stands: jax.Array
    fallen: jax.Array


@flax.struct.dataclass
class Record:
    """One robot, from when it was set up until it was watched long enough.

    Attributes:
      final: The robot at the end.
      samples: [T] of each.
      zmp: [T, 2] m, zero moment point of the linear inverted pendulum. It takes any
        force for the floor's: during the push it is far from the feet.
    """

    final: Trial
    samples: Sample
    zmp: jax.Array


def single_push(trials: PushTrials, impulse: float, direction: float) -> Push:
    """Returns what one robot is given, under the first strategy of the trials.

    Args:
      trials: For the gains and the duration.
      impulse: N·s.
      direction: rad; 0 pushes forward, pi/2 to the robot's left.
    """
    none = np.zeros(1, np.int32)
    cases = Cases(none, np.full(1, direction), np.full(1, impulse), none)
    pushes = trials.pushes(stack_gains(trials.gains[:1]), cases)
    return jax.tree.map(lambda x: jnp.asarray(x[0]), pushes)


def observe(step: TrialStep, trial: Trial, push: Push) -> tuple[Trial, Sample]:
    """Moves a robot by one control step and returns what that shows."""
    after = step(trial, push)
    controller, sim_dt = step.controller, step.physics.model.opt.timestep
    sensed = step.robot.sense(after.data)
    seen = controller.perception(sensed)
    capture = seen.capture_point(controller.mass, push.gains.momentum)
    _, wrench = step.inputs(trial, push)
    return (
        after,
        Sample(
            time=after.time - sim_dt,  # sensors are one physics step old
            qpos=after.data.qpos,
            com=seen.com,
            velocity=seen.velocity,
            floor=seen.floor,
            capture=capture,
            pressure=centre_of_pressure(seen.corner[:, :2], seen.pressure)[0],
            margin=signed_margin(seen.support(), capture),
            lean=jnp.arccos(jnp.clip(seen.attitude[2, 2], -1.0, 1.0)),
            torque=sensed.joint_torque[controller.perception.legs],
            load=seen.load,
            swing=after.memory.step.swing,
            steps=after.memory.step.count,
            impulse=wrench[:, :3].sum(0) * sim_dt,
            stands=after.stands,
            fallen=after.fallen,
        ),
    )


def record(step: TrialStep, trial: Trial, push: Push, steps: int) -> Record:
    """Moves a robot by so many control steps and keeps what each showed; pure."""
    final, samples = jax.lax.scan(
        lambda trial, _: observe(step, trial, push), trial, None, length=steps
    )
    period = step.physics.control_period
    velocity = samples.velocity[:, :2]
    change = jnp.diff(velocity, axis=0, prepend=velocity[:1]) / period
    keep = math.exp(-period / _SMOOTHING)

    def smooth(before: jax.Array, now: jax.Array) -> tuple[jax.Array, jax.Array]:
        after = low_pass(before, now, keep)
        return after, after

    _, acceleration = jax.lax.scan(smooth, change[0], change)
    zmp = jax.vmap(zero_moment_point)(samples.com, acceleration, samples.floor)
    return Record(final=final, samples=samples, zmp=zmp)


def record_push(trials: PushTrials, impulse: float, direction: float) -> Record:
    """Records the robot as designed under the first strategy, as numpy arrays.

    Args:
      trials: How it stands, is pushed and is watched.
      impulse: N·s.
      direction: rad.
    """
    config, step = trials.config, trials.step
    seconds = config.settle + config.watch
    steps = round(seconds / step.physics.control_period)
    key = jax.random.key_data(jax.random.key(config.seed))

    @jax.jit
    def go(push: Push) -> Record:
        trial = step.begin(push.gains, jnp.int32(0), config.settle)
        return record(step, dataclasses.replace(trial, key=key), push, steps)

    return jax.tree.map(np.asarray, go(single_push(trials, impulse, direction)))


def columns(found: Record) -> dict[str, np.ndarray]:
    """Returns name -> [T] numbers; the name ends in the unit.

    Points are measured from where the centre of mass was when the push began.
    """
    samples = found.samples
    points = {
        "com_offset": samples.com[:, :2],
        "capture": samples.capture,
        "zmp": found.zmp,
        "cop": samples.pressure,
    }
    table: dict[str, Any] = {"time_s": samples.time}
    for name, point in points.items():
        for i, axis in enumerate("xy"):
            table[f"{name}_{axis}_m"] = point[:, i] - found.final.com[i]
    table |= {"margin_m": samples.margin, "lean_rad": samples.lean}
    for side, name in enumerate(SIDES):
        for joint in _WRITTEN:
            torque = samples.torque[:, side, LEG.index(joint)]
            table[f"{name}_{joint}_Nm"] = torque
    for side, name in enumerate(SIDES):
        table[f"{name}_load_N"] = samples.load[:, side]
    # None while both stand.
    table["swing_foot"] = np.array([*SIDES, ""])[samples.swing]
    return table


def metrics(
    found: Record, trials: PushTrials, impulse: float, direction: float
) -> dict[str, Any]:
    """Returns what is told of a record, as plain values; undefined ones are None.

    Args:
      found: The record.
      trials: What `record_push` was given.
      impulse: The same.
      direction: The same.
    """
    final, config = found.final, trials.config
    numbers: dict[str, Any] = {
        "direction_deg": math.degrees(direction),
        "impulse_asked_Ns": impulse,
        "impulse_delivered_Ns": np.linalg.norm(found.samples.impulse.sum(0)),
        "duration_s": config.duration,
        "height_m": trials.stance.push_height,
        "peak_lean_rad": final.peak_lean,
        "peak_offset_m": final.peak_offset,
        "moved_m": final.moved,
        "saturated_s": final.saturated_s,
        "time_to_recover_s": _time_to_recover(found),
    }
    return {
        "robot": config.robot,
        "strategy": config.strategy_names[0],
        "engine": trials.engine,
        "recovered": bool(final.stands),
        "diverged": _diverged(found),
        "steps": int(final.memory.step.count),
        "origin_m": [float(x) for x in final.com],
        **{
            name: float(value) if math.isfinite(value) else None
            for name, value in numbers.items()
        },
    }


def _diverged(found: Record) -> bool:
    """Returns whether its physics left the finite numbers before it fell."""
    finite = np.isfinite(found.samples.qpos).all(1)
    return not finite.all() and not (found.samples.fallen & finite).any()


def _time_to_recover(found: Record) -> float:
    """Returns how long after the push began it stands for good, s; NaN: it does not."""
    if not found.final.stands:
        return math.nan
    time, stands = found.samples.time, found.samples.stands
    # Times are sums of periods: half a one decides.
    down = np.flatnonzero((time > (time[0] - time[1]) / 2) & ~stands)
    return float(time[down[-1] + 1]) if len(down) else 0.0
