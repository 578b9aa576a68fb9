"""The balance strategies on pushed robots, in batches and one by one."""

import copy
import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from conftest import quick_jit

from playground.controllers.balance.controller import BalanceController
from playground.controllers.balance.forces import plan_force
from playground.controllers.balance.gains import BalanceGains, load_gains
from playground.controllers.balance.perception import CORNERS, SIDES
from playground.errors import PlaygroundError
from playground.experiments.push.cases import Cases
from playground.experiments.push.config import PushConfig
from playground.experiments.push.trials import PushTrials, stack_gains, varied_models
from playground.physics.base import Data

# Batches of 16 are the smallest that are compiled; most of what follows uses them.
CONFIG = PushConfig(engine="native", settle=0.4, watch=2.5)
NONE, ANKLE, HIP, STEP = range(4)
AROUND = np.array([0.0, 90.0, 180.0, 270.0])  # deg: forward, left, back, right


def cases(strategy, degrees, impulse) -> Cases:
    """One for each of what broadcasts together."""
    columns = np.broadcast_arrays(strategy, np.deg2rad(degrees), impulse, 0)
    return Cases(*(np.array(column).ravel() for column in columns))


@pytest.fixture(scope="module")
def trials() -> PushTrials:
    """Compiled once; not to be changed."""
    return PushTrials(CONFIG)


def watched(trials: PushTrials, seconds: float) -> PushTrials:
    """The same trials, compiled as they are, watched for another time."""
    other = copy.copy(trials)
    other.config = dataclasses.replace(trials.config, watch=seconds)
    return other


@pytest.fixture(scope="module")
def mild(trials):
    """All strategies pushed with 6 N·s from the four sides, [4, 4]."""
    found = trials.run(cases(np.arange(4)[:, None], AROUND, 6.0))
    names = [field.name for field in dataclasses.fields(found)]
    return types.SimpleNamespace(
        **{name: getattr(found, name).reshape(4, 4) for name in names}
    )


def test_ankles_and_hips_withstand_six_newton_seconds_from_all_sides(mild):
    for strategy in (ANKLE, HIP, STEP):
        assert mild.recovered[strategy].all(), strategy
        assert (mild.peak_lean[strategy] < 0.3).all()
        assert (mild.moved[strategy] < 0.06).all()


def test_posture_alone_falls(mild):
    """Forward and backward; sideways it takes longer than it is watched here."""
    assert not mild.recovered[NONE, ::2].any()
    # Much farther than with any of the others.
    offset, best = (
        mild.peak_offset[NONE, ::2],
        mild.peak_offset[[ANKLE, HIP, STEP]].max(),
    )
    assert (offset[np.isfinite(offset)] > 3 * best).all()


def test_a_fall_is_no_divergence(mild):
    """The physics of robots that lie on the floor goes on in finite numbers."""
    assert not mild.recovered[NONE, ::2].any() and not mild.diverged.any()


def test_left_and_right_are_alike(mild):
    """To 2 % of what a robot does: it is its own mirror image."""
    for name in ("peak_lean", "peak_offset"):
        value = getattr(mild, name)[[ANKLE, HIP, STEP]]
        np.testing.assert_allclose(value[:, 1], value[:, 3], rtol=0.02)


# One robot in plain MuJoCo.


@pytest.fixture(scope="module")
def act(trials):
    """gains, memory, state, shift of the sensed CoM -> memory, torques; compiled."""
    robot = trials.robot
    controller = BalanceController(robot, robot.model.opt.timestep)

    def sense(state):
        data = Data(jnp.zeros(()), *state, state[1], jnp.int32(0))
        return robot.sense(data)

    @jax.jit
    def step(gains, memory, state, shift):
        sensed = sense(state)
        shown = sensed.sensors | {"com": sensed["com"] + shift}
        return controller(gains, memory, dataclasses.replace(sensed, sensors=shown))

    step.init = jax.jit(lambda state: controller.init(sense(state)))
    step.limit = controller.limit
    return step


def state(data: mujoco.MjData) -> tuple[np.ndarray, ...]:
    return tuple(np.float32(x) for x in (data.qpos, data.qvel, data.sensordata))


def single(gains):
    """Gains as traced numbers of one robot."""
    return jax.tree.map(np.float32, gains)


class Plain:
    """A robot in plain MuJoCo under the controller, step by step."""

    def __init__(self, robot, act, gains):
        self.robot, self.act, self.gains = robot, act, single(gains)
        self.model, self.data = robot.model, mujoco.MjData(robot.model)
        self.data.qpos[:] = robot.home_qpos
        mujoco.mj_forward(self.model, self.data)
        self.memory = act.init(state(self.data))

    def go(self, steps: int, force=(0, 0, 0), shift=(0, 0, 0), factor=1.0, peaks=None):
        """Moves it on; one that is down stays there."""
        for _ in range(steps if self.data.qpos[2] > 0.6 else 0):
            self.memory, torque = self.act(
                self.gains, self.memory, state(self.data), np.float32(shift)
            )
            self.data.ctrl[:] = factor * np.asarray(torque)
            self.data.xfrc_applied[self.robot.base_body, :3] = force
            mujoco.mj_step(self.model, self.data)
            if peaks is not None:
                peaks.append(self.ankles())

    def ankles(self) -> np.ndarray:
        joints = [self.model.joint(f"{side}_ankle_roll").id for side in SIDES]
        return self.data.xanchor[joints].copy()

    def pressure(self) -> np.ndarray:
        feet = [f"{side}_foot_{corner}" for side in SIDES for corner in CORNERS]
        force = np.array([self.data.sensor(name).data[0] for name in feet])
        place = np.array([self.data.site(name).xpos[:2] for name in feet])
        return force @ place / force.sum()


@pytest.mark.parametrize(
    ("strategy", "degrees"),
    [("ankle", 0), ("ankle", 180), *(("ankle+hip", degrees) for degrees in AROUND)],
)
def test_the_pressure_goes_where_the_centre_of_mass_went(
    trials, act, strategy, degrees
):
    """It must be beyond a displaced CoM to push it home; told 2 cm, at rest."""
    robot = Plain(trials.robot, act, load_gains(strategy))
    robot.go(200)
    rest = robot.pressure()
    angle = np.deg2rad(degrees)
    towards = np.array([np.cos(angle), np.sin(angle)])
    found = []
    for _ in range(30):
        robot.go(1, shift=[*(0.02 * towards), 0.0])
        found.append(robot.pressure())
    shift = np.mean(found[10:], axis=0) - rest
    assert shift @ towards > 0.002
    assert abs(shift @ [-towards[1], towards[0]]) < 0.002
    # And so the centre of mass sets out for home.
    assert robot.data.sensor("com_linvel").data[:2] @ towards < 0


@pytest.mark.parametrize(
    ("joint", "degrees", "impulse"),
    [("_ankle_pitch", 0, 5.0), ("_ankle_pitch", 180, 5.0), ("_ankle_roll", 90, 13.0)],
)
def test_ankles_of_the_wrong_sign_throw_it_over(trials, act, joint, degrees, impulse):
    """What a push the right sign withstands; sideways, legs alone withstand some."""
    gains = BalanceGains(ankle=1.0, capture=1.0, momentum=0.5, sole_margin=0.005)
    angle = np.deg2rad(degrees)
    force = impulse / 0.08 * np.array([np.cos(angle), np.sin(angle), 0.0])
    upright = []
    for sign in (1.0, -1.0):
        factor = np.ones(15)
        factor[trials.robot.joint_rows(joint)] = sign
        robot = Plain(trials.robot, act, gains)
        robot.go(200)
        for steps, push in ((40, force), (800, 0 * force)):
            robot.go(steps, force=push, factor=factor)
        upright.append(robot.data.qpos[2] > 0.95)
    assert upright == [True, False]


def stands(robot: Plain, ankles: list[np.ndarray]) -> bool:
    """What counts as recovered, by hand from MuJoCo's own numbers."""
    data = robot.data
    moved = np.linalg.norm(np.array(ankles) - ankles[0], axis=-1).max()
    upright = data.xmat[robot.robot.base_body].reshape(3, 3)[2, 2]
    speed = np.linalg.norm(data.sensor("com_linvel").data)
    return upright > 0.9 and data.qpos[2] > 0.95 and speed < 0.1 and moved <= 0.06


def test_a_plain_robot_agrees_with_the_batch(trials, act):
    """Impulses well below and above the edge, forward and to the left."""
    ladder, degrees = np.array([7.0, 35.0]), np.array([[0.0], [90.0]])
    batch = trials.run(cases(HIP, degrees, ladder)).recovered.reshape(2, 2)
    duration, period = CONFIG.duration, trials.robot.model.opt.timestep
    alone = np.zeros((2, 2), bool)
    for i, angle in enumerate(np.deg2rad(degrees.ravel())):
        for j, impulse in enumerate(ladder):
            robot = Plain(trials.robot, act, trials.gains[HIP])
            robot.go(round(CONFIG.settle / period))
            ankles = [robot.ankles()]
            force = impulse / duration * np.array([np.cos(angle), np.sin(angle), 0])
            robot.go(round(duration / period), force=force, peaks=ankles)
            robot.go(round((CONFIG.watch - duration) / period), peaks=ankles)
            alone[i, j] = stands(robot, ankles)
    np.testing.assert_array_equal(alone, batch)
    np.testing.assert_array_equal(alone, [[True, False]] * 2)


def test_strategies_are_switched_without_compiling_again(trials, act):
    """The same robot, falling to the left: four answers of one program."""
    data = mujoco.MjData(trials.robot.model)
    data.qpos[:] = trials.robot.home_qpos
    data.qpos[2] -= 5e-4  # the soles carry
    data.qvel[1] = 1.2
    mujoco.mj_forward(data.model, data)
    torques, memory = [], act.init(state(data))
    for gains in trials.gains:
        after, torque = act(single(gains), memory, state(data), np.zeros(3, np.float32))
        torques.append(np.asarray(torque))
        assert (np.abs(torque) <= act.limit).all()
        assert (after.step.swing >= 0) == (gains.step > 0)
    assert act._cache_size() == 1
    for i in range(4):
        for j in range(i):
            assert np.abs(torques[i] - torques[j]).max() > 1.0, (i, j)
    # Ankles alone leave all other joints to posture.
    ankles = trials.robot.joint_rows("_ankle_pitch", "_ankle_roll")
    others = np.setdiff1d(np.arange(15), ankles)
    np.testing.assert_allclose(torques[ANKLE][others], torques[NONE][others], atol=2.0)


@pytest.mark.parametrize("strategy", ["none", "ankle", "ankle+hip", "step"])
def test_torques_are_numbers_however_the_robot_lies(trials, act, strategy):
    """On its face, back and side; legs up, so that its feet are above its CoM."""
    data = mujoco.MjData(trials.robot.model)
    memory = None
    for turn in ((1, 0, 1, 0), (1, 0, -1, 0), (1, 1, 0, 0), (0, 1, 0, 0)):
        data.qpos[:] = trials.robot.home_qpos
        data.qpos[2:7] = 0.3, *(np.array(turn) / np.linalg.norm(turn))
        mujoco.mj_forward(data.model, data)
        memory = act.init(state(data)) if memory is None else memory
        gains = single(load_gains(strategy))
        memory, torque = act(gains, memory, state(data), np.zeros(3, np.float32))
        assert (np.abs(torque) <= act.limit).all(), turn  # NaN is not
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(memory)), turn


# Batches.


def test_every_robot_has_gains_of_its_own(trials):
    """The more the capture point is drawn home, the less the body moves."""
    gains = stack_gains([load_gains("ankle")] * 16)
    share = np.linspace(0.5, 3.5, 16).astype(np.float32)
    gains = dataclasses.replace(gains, capture=share)
    some = cases(0, 0.0, np.full(16, 5.0))
    found = watched(trials, 0.7).run_gains(gains, some)
    assert len(np.unique(found.peak_offset)) == 16
    assert found.peak_offset[0] > found.peak_offset[-1]
    assert trials.move._cache_size() == 1  # all that was run so far


def test_an_outcome_depends_on_its_case_alone(trials):
    """Alone, among 7 and among 64 (which run as 48 and 16), 0.8 s after the push."""
    rng, short = np.random.default_rng(0), watched(trials, 0.8)
    crowd = cases(
        rng.integers(1, 4, 64), rng.uniform(0.0, 360.0, 64), rng.uniform(0.0, 8.0, 64)
    )
    crowd.impulse[5:10] = 45.0  # these fall and make room
    whole = short.run(crowd)
    assert whole.recovered.any() and not whole.recovered[5:10].any()
    for rows in ([0], [5], np.array([63, 0, 40, 3, 5, 31, 9])):
        some = short.run(crowd[rows])
        np.testing.assert_array_equal(some.recovered, whole.recovered[rows])
        kept = whole.peak_lean[rows] < 0.5  # the others tumble: rounding grows
        for name in ("moved", "peak_lean", "peak_offset"):
            one, other = getattr(some, name), getattr(whole, name)[rows]
            np.testing.assert_allclose(one[kept], other[kept], atol=1e-4, err_msg=name)


# Robots watched at every step.

SECONDS = 0.7


@pytest.fixture(scope="module")
def film(trials):
    """Eight pushed robots over 350 control steps: arrays [350, 8, ...]."""
    step, controller = trials.step, trials.step.controller
    half = controller.perception.half_sole

    def look(trial, push):
        torque, wrench = step.inputs(trial, push)
        seen = controller.perception(trials.robot.sense(trial.data))
        memory = trial.memory
        plan = plan_force(
            push.gains, seen, memory.step.stance, memory.lean, 0.94, 35.0, half
        )
        shift = plan.support.point - seen.foot
        return {
            "torque": torque,
            "wrench": wrench[0],
            "on_sole": jnp.einsum("fij,fi->fj", seen.foot_frame, shift),
            "share": plan.support.share,
            "foot": seen.foot,
            "load": seen.load,
            "capture": plan.capture,
            "height": seen.height,
            "swing": memory.step.swing,
            "target": memory.step.target,
            "count": memory.step.count,
            "fallen": trial.fallen,
            "saturated_s": trial.saturated_s,
        }

    @quick_jit
    @functools.partial(jax.vmap, out_axes=1)
    def play(trial, push):
        def both(trial, _):
            return step(trial, push), look(trial, push)

        return jax.lax.scan(both, trial, None, length=round(SECONDS / 0.002))[1]

    pushed = cases(
        [NONE, ANKLE, ANKLE, HIP, HIP, STEP, STEP, STEP],
        [90.0, 0.0, 90.0, 180.0, 0.0, 90.0, 270.0, 180.0],
        [15.0, 10.0, 10.0, 25.0, 9.0, 16.0, 16.0, 14.0],
    )
    gains = jax.tree.map(lambda x: x[pushed.strategy], stack_gains(trials.gains))
    shown = play(trials.settled(gains, pushed), trials.pushes(gains, pushed))
    return {name: np.asarray(value) for name, value in shown.items()}


def test_torques_stay_within_their_limits(trials, film):
    torque, limit = film["torque"], trials.step.controller.limit
    standing = ~film["fallen"]
    assert (np.abs(torque[standing]) <= limit).all()
    assert (limit == 300).all()
    # The one that is pushed too hard meets them, which is noted.
    met = (np.abs(torque) >= limit).any(-1) & standing
    noted = np.diff(film["saturated_s"], axis=0) > 0
    np.testing.assert_array_equal(met[:-1][standing[1:]], noted[standing[1:]])


def test_the_pressure_asked_for_never_leaves_the_soles(trials, film):
    standing = ~film["fallen"]
    at, share = film["on_sole"][standing], film["share"][standing]
    assert (np.abs(at[..., :2]) <= [0.11 + 1e-6, 0.05 + 1e-6]).all()
    np.testing.assert_allclose(at[..., 2], 0, atol=1e-5)
    np.testing.assert_allclose(share.sum(-1), 1, atol=1e-5)
    assert (share >= 0).all()
    # A foot in the air is asked for nothing.
    for foot in (0, 1):
        assert not film["share"][film["swing"] == foot, foot].any()
    assert (film["swing"][:, 5:] >= 0).any()


def test_only_stepping_robots_step(film):
    assert not film["count"][:, :5].any() and (film["swing"][:, :5] == -1).all()
    assert (film["count"][-1, 5:] >= 1).all()


def test_the_push_is_the_one_asked(film):
    first = film["wrench"][:60]  # before any robot is down
    impulse = first.sum(0) * 0.002
    along = [15j, 10, 10j, -25, 9, 16j, -16j, -14]
    expected = np.array([[z.real, z.imag, 0, 0, 0, 0] for z in np.array(along)])
    np.testing.assert_allclose(impulse, expected, atol=1e-3)
    assert not first[40:].any() and first[:40].any(-1).all()


@pytest.mark.parametrize("row", [5, 6, 7], ids=["left", "right", "back"])
def test_a_step_lifts_a_foot_and_sets_it_where_the_body_will_be(trials, film, row):
    shown = {name: value[:, row] for name, value in film.items()}
    swing, foot = shown["swing"], shown["foot"]
    lift = int(np.argmax(swing >= 0))
    which = swing[lift]
    land = lift + int(np.argmax(swing[lift:] != which))
    assert 0.05 < (land - lift) * 0.002 < 0.6
    gains = trials.gains[STEP]
    # The sole clears the floor by half of what is asked, at least, and carries nothing.
    height = foot[lift:land, which, 2]
    assert height.max() - foot[lift, which, 2] > gains.clearance / 2
    middle = shown["load"][lift + (land - lift) // 3 : lift + (land - lift) // 2, which]
    assert (middle == 0).all() and (shown["load"][lift - 1, 1 - which] > 0).all()
    # It lands where it was to, moved in the direction of the push.
    way = foot[land, which, :2] - foot[lift, which, :2]
    angle = np.deg2rad([90.0, 270.0, 180.0][row - 5])
    towards = np.array([np.cos(angle), np.sin(angle)])
    assert way @ towards > 0.06
    aim = shown["target"][land - 1]
    assert np.linalg.norm(foot[land, which, :2] - aim) < 0.15
    # By its law, xi ran from the edge of the stance sole as e^(omega t): it is there.
    beyond = (shown["capture"][land] - foot[land, which, :2]) @ towards
    assert abs(beyond) < 0.15


# The push.


class Paper:
    """Physics in which nothing moves, that writes down how it was pushed."""

    substeps, control_period = 1, 0.002

    def __init__(self, model: mujoco.MjModel):
        self.model = model

    def step(self, data, ctrl, push):
        wrench = jnp.zeros_like(data.qvel).at[:6].set(push[0])
        return dataclasses.replace(data, qvel=wrench)


def test_a_push_delivers_its_impulse_and_its_moment(trials):
    """0.0813 s is no whole number of steps; the trunk leans, and with it the lever."""
    duration, lever = 0.0813, 0.15
    step = dataclasses.replace(
        trials.step, physics=Paper(trials.robot.model), duration=duration, lever=lever
    )
    some = cases(ANKLE, AROUND, np.array([6.0, 7.0, 8.0, 9.0]))
    gains = jax.tree.map(lambda x: x[some.strategy], stack_gains(trials.gains))
    trial = trials.settled(gains, some)
    # The orientation sensor is turned by 0.3 rad about y: the trunk leans forward.
    where = trials.robot.model.sensor("orientation").adr[0]
    sensed = np.array(trial.data.sensordata)
    sensed[:, where : where + 4] = [np.cos(0.15), 0, np.sin(0.15), 0]
    data = dataclasses.replace(trial.data, sensordata=sensed)
    trial = dataclasses.replace(trial, data=data, time=np.full(4, -0.0057, np.float32))
    push = trials.pushes(gains, some)
    push = dataclasses.replace(push, force=push.force * CONFIG.duration / duration)

    @jax.jit
    @jax.vmap
    def given(trial, push):
        def both(trial, _):
            after = step(trial, push)
            return after, after.data.qvel[:6]

        return jax.lax.scan(both, trial, None, length=60)[1]

    wrench = np.asarray(given(trial, push))
    impulse = some.impulse[:, None] * np.stack(
        [np.cos(some.direction), np.sin(some.direction), 0 * some.direction], 1
    )
    total = wrench.sum(1) * 0.002
    np.testing.assert_allclose(total[:, :3], impulse, atol=1e-4)
    up = lever * np.array([np.sin(0.3), 0, np.cos(0.3)])
    np.testing.assert_allclose(total[:, 3:], np.cross(up, impulse), atol=1e-4)
    # It begins within the third step and ends within the forty-fourth.
    share = wrench[0, :, 0] / wrench[0, 10, 0]
    np.testing.assert_allclose(share[:4], [0, 0, 0.15, 1], atol=1e-3)
    last = -0.0057 + np.arange(60) * 0.002
    inside = np.clip((np.minimum(last + 0.002, duration) - np.maximum(last, 0)), 0, 1)
    np.testing.assert_allclose(share, inside / 0.002, atol=1e-3)


def test_a_push_acts_at_the_height_asked():
    model = PushTrials(CONFIG).robot.model
    data = mujoco.MjData(model)
    data.qpos[:] = model.key("home").qpos
    mujoco.mj_forward(model, data)
    torso, com = data.body("torso").xipos[2], data.subtree_com[1, 2]
    for height, where in (("torso", torso), ("com", com), ("1.25", 1.25)):
        made = PushTrials(dataclasses.replace(CONFIG, height=height))
        assert made.stance.push_height == pytest.approx(where)
        assert made.step.lever == pytest.approx(where - torso, abs=1e-9)
        assert made.stance.mass == pytest.approx(35.0)
        assert made.stance.com_height == pytest.approx(com)
    assert 1.1 < torso < 1.3 and 0.9 < com < 1.0
    with pytest.raises(PlaygroundError, match=r"2.5 m is not on the robot: torso"):
        PushTrials(dataclasses.replace(CONFIG, height="2.5"))


# What counts as recovered.


def test_a_diverged_robot_has_fallen_and_is_told(trials, monkeypatch):
    settled = PushTrials.settled

    def poisoned(self, gains, cases):
        found = settled(self, gains, cases)
        qpos = np.array(found.data.qpos)
        qpos[1, 3] = np.nan
        return dataclasses.replace(
            found, data=dataclasses.replace(found.data, qpos=qpos)
        )

    monkeypatch.setattr(PushTrials, "settled", poisoned)
    found = watched(trials, 1.5).run(cases(HIP, 0.0, np.full(3, 2.0)))
    np.testing.assert_array_equal(found.recovered, [True, False, True])
    np.testing.assert_array_equal(found.diverged, [False, True, False])


def test_feet_that_moved_have_not_kept_their_place_unless_stepping(trials):
    """More than 6 cm, ever; and a robot that was down stays down."""
    some = cases(np.repeat([ANKLE, HIP, STEP], 5), 0.0, 0.0)
    gains = jax.tree.map(lambda x: x[some.strategy], stack_gains(trials.gains))
    pad = np.minimum(np.arange(16), 14)
    trial, push = jax.tree.map(
        lambda x: np.asarray(x)[pad],
        (trials.settled(gains, some), trials.pushes(gains, some)),
    )
    moved = np.tile(np.float32([0.0, 0.059, 0.061, 0.5, 0.0]), 3)[pad]
    fallen = (np.arange(16) % 5 == 4)[pad]
    trial = dataclasses.replace(trial, moved=moved, fallen=fallen)
    after = trials.move(trial, push, 5)
    expected = [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 0]]
    np.testing.assert_array_equal(
        np.asarray(after.stands)[:15].reshape(3, 5), np.array(expected, bool)
    )
    np.testing.assert_array_equal(after.fallen, fallen)


def test_varied_models_are_the_corners_first(trials):
    config = dataclasses.replace(CONFIG, models=6, torso_mass=0.2, friction=0.5)
    designed, *varied = varied_models(trials.robot, config)
    assert designed is trials.robot.model and len(varied) == 6
    base, torso = trials.robot.base_body, designed.body_mass[trials.robot.base_body]
    found = [
        (model.body_mass[base] / torso, model.geom("left_sole").friction[0])
        for model in varied
    ]
    corners = [(0.8, 1.4), (0.8, 0.5), (1.2, 1.4), (1.2, 0.5)]
    np.testing.assert_allclose(found[:4], corners)
    for scale, friction in found[4:]:
        assert 0.8 < scale < 1.2 and 0.5 < friction < 1.4
    for model in varied:  # what MuJoCo derives is derived anew
        assert model.body_subtreemass[base] == pytest.approx(model.body_mass.sum())
        np.testing.assert_array_equal(
            model.geom("left_sole").friction, model.geom("right_sole").friction
        )


@pytest.mark.slow
def test_noise_belongs_to_the_case():
    noisy = dataclasses.replace(CONFIG, position_noise=0.002, velocity_noise=0.02)
    made, quiet = PushTrials(noisy), PushTrials(CONFIG)
    some = cases(HIP, AROUND, np.full(4, 5.0))
    whole = made.run(some)
    assert whole.recovered.all()
    alone = made.run(some[[2]])
    np.testing.assert_allclose(alone.peak_offset, whole.peak_offset[2], atol=1e-4)
    assert (np.abs(quiet.run(some).peak_offset - whole.peak_offset) > 1e-6).all()
    reseeded = PushTrials(dataclasses.replace(noisy, seed=1)).run(some)
    assert (np.abs(reseeded.peak_offset - whole.peak_offset) > 1e-6).all()
