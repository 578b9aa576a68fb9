"""The seed's rule on every engine against plain MuJoCo, and what trials report."""

import dataclasses
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from conftest import assert_equal

from playground.controllers.hopper import fsm as machine
from playground.controllers.hopper.gains import HopperCommand, HopperGains
from playground.controllers.hopper.perception import Perceived
from playground.controllers.hopper.seed import SeedController, SeedMemory
from playground.errors import PlaygroundError
from playground.experiments.hopper.config import HopperConfig
from playground.experiments.hopper.trials import HopperTrials
from playground.paths import asset_folder
from playground.robots.registry import load_robot
from playground.robots.robot import Robot, Sensed

SECONDS = 10
KP = np.array([1000.0, 850, 900, 950, 1050, 1100, 1150, 1200])  # N/m, in stance
# Hops counted at 1, 2, ... 10 s, and height of the first apexes, m.
HOPS = [1, 2, 3, 4, 5, 6, 8, 9, 10, 12]


class PlainRule:
    """The seed's rule as a Python loop over plain numbers."""

    def __init__(self):
        self.phase, self.hops, self.hip = "AIR1", 0, 0.0

    def __call__(self, foot: float, speed: float) -> list[str]:
        """Returns the phases entered."""
        entered = []
        for left, goes, to in (
            ("AIR1", foot < 0.05, "STANCE1"),
            ("STANCE1", speed > 0, "STANCE2"),
            ("STANCE2", foot > 0.05, "AIR2"),
            ("AIR2", speed < 0, "AIR1"),
        ):
            if self.phase == left and goes:
                self.phase = to
                self.hops += to == "AIR1"
                entered.append(to)
        if self.phase == "STANCE2":
            self.hip = -0.2
        if self.phase == "AIR2":
            self.hip = 0.0
        return entered

    @property
    def knee(self) -> tuple[float, float]:
        """Stiffness and damping."""
        return (1000.0, 0.0) if "STANCE" in self.phase else (100.0, 10.0)


@dataclasses.dataclass
class Reference:
    """What plain MuJoCo does: (step, phase) of events, x and height by step, hops."""

    events: list[tuple[int, str]]
    x: np.ndarray
    height: np.ndarray
    hops: list[int]


@pytest.fixture(scope="module")
def reference() -> Reference:
    """Rule, then `mj_step`, with the foot's place as `mj_step` left it."""
    model = mujoco.MjModel.from_xml_path(str(asset_folder("xmls") / "hopper.xml"))
    data, rule = mujoco.MjData(model), PlainRule()
    row = {model.actuator(i).name: i for i in range(model.nu)}
    foot, z = model.body("foot").id, model.joint("z").dofadr[0]

    def servo(joint: str, kp: float, kv: float) -> None:
        p, v = row[f"pservo-{joint}"], row[f"vservo-{joint}"]
        model.actuator_gainprm[p, 0], model.actuator_biasprm[p, 1] = kp, -kp
        model.actuator_gainprm[v, 0], model.actuator_biasprm[v, 2] = kv, -kv

    servo("hip", 100.0, 10.0)
    servo("knee", 1000.0, 0.0)
    mujoco.mj_forward(model, data)
    events, hops, track = [], [], []
    for step in range(1000 * SECONDS):
        entered = rule(data.xpos[foot, 2], data.qvel[z])
        events += [(step, phase) for phase in entered]
        track.append((data.qpos[0], 2 + data.qpos[1]))
        servo("knee", *rule.knee)
        data.ctrl[row["pservo-hip"]] = rule.hip
        mujoco.mj_step(model, data)
        if step % 1000 == 999:
            hops.append(rule.hops)
    x, height = np.array(track).T
    return Reference(events, x, height, hops)


class Counted(SeedController):
    """Counts how often it is traced."""

    traced = 0

    def __call__(self, *args):
        self.traced += 1
        return super().__call__(*args)


@dataclasses.dataclass
class Batch:
    """Trials with a controller that counts, and eight hoppers that differ in KP."""

    trials: HopperTrials
    counted: Counted
    cases: object
    outcomes: object


def made(engine: str) -> Batch:
    trials = HopperTrials(
        HopperConfig(engine=engine, seconds=SECONDS, window=3.0, events=64)
    )
    counted = Counted(trials.robot, trials.period)
    trials.step = dataclasses.replace(trials.step, controller=counted)
    trials.begin = jax.jit(jax.vmap(trials.step.begin))
    trials.move = jax.jit(trials._segment)
    cases = trials.cases(len(KP), {"stance_kp": KP})
    return Batch(trials, counted, cases, trials.run(cases))


@pytest.fixture(scope="module")
def native() -> Batch:
    return made("native")


SLOW = pytest.param("mjx", marks=pytest.mark.slow)  # some 40 s


@pytest.fixture(scope="module", params=["native", SLOW])
def batch(request) -> Iterator[Batch]:
    if request.param == "native":
        return request.getfixturevalue("native")
    return made("mjx")


def events(batch: Batch, row: int = 0) -> list[tuple[int, str]]:
    steps, phases = batch.outcomes.event_step[row], batch.outcomes.event_phase[row]
    kept = steps >= 0
    return [
        (int(step), machine.PHASES[phase])
        for step, phase in zip(steps[kept], phases[kept], strict=True)
    ]


def hops_by_second(found: list[tuple[int, str]]) -> list[int]:
    ends = [step for step, phase in found if phase == "AIR1"]
    return [sum(step < 1000 * t for step in ends) for t in range(1, SECONDS + 1)]


def test_reference_hops_as_the_facts_say(reference):
    assert reference.hops == HOPS
    apexes = [reference.height[s] for s, phase in reference.events if phase == "AIR1"]
    np.testing.assert_allclose([apexes[0], apexes[7]], [2.005, 1.784], atol=1e-3)


def test_native_follows_the_reference_step_for_step(native, reference):
    wanted = [event for event in reference.events if event[0] < 5000]
    assert len(wanted) > 20
    assert [event for event in events(native) if event[0] < 5000] == wanted


def test_events_are_those_of_the_reference(batch, reference):
    """Five hops within 2 ms; float32 does not follow for ever."""
    ends = [i for i, (_, phase) in enumerate(reference.events) if phase == "AIR1"]
    wanted, found = reference.events[: ends[4] + 1], events(batch)[: ends[4] + 1]
    assert [phase for _, phase in found] == [phase for _, phase in wanted]
    gaps = [abs(a[0] - b[0]) for a, b in zip(found, wanted, strict=True)]
    assert max(gaps) <= 2


def test_hops_counted_each_second_are_those_of_the_reference(batch, reference):
    assert hops_by_second(events(batch)) == reference.hops
    assert batch.outcomes.hops[0] == reference.hops[-1]


def test_outcomes_are_those_of_the_reference(native, reference):
    found, x = native.outcomes, reference.x
    last = max(step for step, phase in reference.events if phase == "AIR1")
    # Ten seconds on, rounding of targets to float32 has grown to a cm.
    assert found.apex[0] == pytest.approx(reference.height[last], abs=0.02)
    assert found.speed[0] == pytest.approx((x[-1] - x[-3000]) / 3, abs=0.02)
    np.testing.assert_allclose(found.phase_s.sum(axis=1), SECONDS, rtol=1e-9)
    changes = [0, *(s for s, _ in reference.events), 1000 * SECONDS]
    names = ["AIR1", *(phase for _, phase in reference.events)]
    for name, seconds in zip(machine.PHASES, found.phase_s[0], strict=True):
        wanted = sum(
            after - before
            for before, after, phase in zip(changes, changes[1:], names, strict=False)
            if phase == name
        )
        assert seconds == pytest.approx(wanted * 1e-3, abs=0.03)
    assert not found.fallen.any() and not found.diverged.any()


def test_eight_gain_sets_give_eight_results_and_one_compile(batch):
    first_hop = [events(batch, row)[3] for row in range(len(KP))]
    assert {phase for _, phase in first_hop} == {"AIR1"}
    assert len({tuple(events(batch, row)) for row in range(len(KP))}) == len(KP)
    # A stiffer knee throws sooner.
    order = np.argsort(KP)
    assert (np.diff([events(batch, row)[2][0] for row in order]) <= 0).all()
    before = batch.counted.traced
    gains = dataclasses.replace(batch.cases.gains, hip_push=jnp.zeros(len(KP)))
    other = dataclasses.replace(batch.cases, gains=gains)
    batch.trials.move(batch.trials.begin(other), other, 3)
    assert batch.counted.traced == before


def test_a_gain_changed_in_stance_raises_the_next_apex(batch):
    """Stiffer when compressed most: the spring holds more energy."""
    trials, same = batch.trials, batch.trials.cases(len(KP))
    traced = batch.counted.traced
    compressed = trials.move(trials.begin(same), same, 460)
    np.testing.assert_array_equal(compressed.memory.fsm.phase, machine.STANCE2)
    stiffness = jnp.linspace(1000.0, 1350.0, len(KP))
    gains = dataclasses.replace(same.gains, stance_kp=stiffness)
    after = trials.move(compressed, dataclasses.replace(same, gains=gains), 700)
    np.testing.assert_array_equal(after.memory.fsm.hops, 1)
    assert (np.diff(after.apex) > 0.01).all()
    assert batch.counted.traced == traced


def test_outcome_depends_on_its_case_alone(native):
    """A batch of another size and order, a shorter run: the same first events."""
    trials = native.trials
    rows = jnp.array([5, 0, 3])
    some = jax.tree.map(lambda x: x[rows], native.cases)
    moved = trials.move(trials.begin(some), some, 1500)
    many = trials.move(trials.begin(native.cases), native.cases, 1500)
    assert_equal(moved, jax.tree.map(lambda x: x[rows], many))


def test_a_fallen_hopper_stops_counting_and_a_lost_one_is_told(native):
    trials, cases = native.trials, native.trials.cases(len(KP))
    qpos = cases.qpos.at[1, 2].set(1.4).at[1, 1].set(-1.4)  # low, leg aside, sinking
    qvel = cases.qvel.at[1, 1].set(-4.0).at[2, 1].set(jnp.nan).at[3, 2].set(20.0)
    cases = dataclasses.replace(cases, qpos=qpos, qvel=qvel)
    first = trials.move(trials.begin(cases), cases, 1200)
    assert first.fallen[:3].tolist() == [False, True, True]
    assert first.diverged[:4].tolist() == [False, False, True, False]
    second = trials.move(first, cases, 100)
    assert_equal(*(jax.tree.map(lambda x: x[1:3], t) for t in (first, second)))
    assert int(second.steps[0]) == 1300
    found = trials.outcomes(second)
    assert found.fell_at[1] == pytest.approx(first.steps[1] * 1e-3)
    assert np.isnan(found.speed[1]) and np.isnan(found.fell_at[0])
    assert found.phase_s[1].sum() == pytest.approx(found.fell_at[1])


def seen(foot: float, speed: float) -> Perceived:
    names = [field.name for field in dataclasses.fields(Perceived)]
    known = {"foot_height": foot, "vertical_speed": speed}
    return Perceived(**{name: jnp.float32(known.get(name, 0.0)) for name in names})


def sensed(robot: Robot, foot: float, speed: float) -> Sensed:
    """A hopper whose upright leg holds the foot at a height."""
    qpos = jnp.array([0.0, foot - 0.75, 0.0, 0.0])
    data = mujoco.MjData(robot.model)
    return robot.sense(Fake(qpos, jnp.array([0.0, speed, 0.0, 0.0]), data.sensordata))


@dataclasses.dataclass
class Fake:
    qpos: jax.Array
    qvel: jax.Array
    sensordata: np.ndarray
    time: float = 0.0


def test_rule_is_the_plain_one_whatever_comes():
    """Phases, hops, gains and targets over random heights and speeds."""
    robot = load_robot("hopper", "flat")
    controller, gains, plain = SeedController(robot, 1e-3), HopperGains(), PlainRule()
    rng = np.random.default_rng(0)
    heights = rng.choice([0.03, 0.04, 0.06, 0.2], 400).astype(np.float32)
    speeds = rng.choice([-1.0, 0.0, 1.0], 400).astype(np.float32)

    def one(memory: SeedMemory, given):
        after, action = controller(gains, memory, sensed(robot, *given))
        entered = machine.transitions(memory.fsm, after.fsm)
        return after, (after, action, entered)

    start = controller.init(sensed(robot, 0.75, 0.0))
    _, (memory, action, entered) = jax.lax.scan(one, start, (heights, speeds))
    row = {robot.model.actuator(i).name: i for i in range(4)}
    several = 0
    for i, given in enumerate(zip(heights, speeds, strict=True)):
        phases = plain(*given)
        several += len(phases) > 1
        assert machine.PHASES[memory.fsm.phase[i]] == plain.phase
        assert memory.fsm.hops[i] == plain.hops
        found = [machine.PHASES[machine.ENTERED[k]] for k in np.flatnonzero(entered[i])]
        assert found == phases
        gain = action.fields["actuator_gainprm"][i, :, 0]
        knee = gain[row["pservo-knee"]], gain[row["vservo-knee"]]
        assert knee == plain.knee
        target = float(action.ctrl[i, row["pservo-hip"]])
        assert target == np.float32(plain.hip)
    assert several > 10 and plain.hops > 20


def test_foot_is_debounced_only_if_asked():
    slow = HopperGains(debounce=0.003)
    for gains, calls in ((HopperGains(), 1), (slow, 4)):
        fsm = machine.begin()
        # A touch that is over too soon does not count.
        for foot in (0.04, 0.04, 0.06) if calls > 1 else ():
            fsm = machine.advance(fsm, gains, seen(foot, -1.0), 1e-3)
            assert fsm.phase == machine.AIR1
        for call in range(1, calls + 1):
            fsm = machine.advance(fsm, gains, seen(0.04, -1.0), 1e-3)
            assert (fsm.phase == machine.STANCE1) == (call == calls)


def test_times_do_not_drift():
    fsm = dataclasses.replace(machine.begin(), step=jnp.int32(3_600_001))
    fsm = machine.advance(fsm, HopperGains(), seen(0.04, -1.0), 1e-3)
    assert fsm.entered.tolist() == [0, 3_600_001, -1, -1]
    assert fsm.step == 3_600_002


def test_bad_input_is_refused(native, tmp_path):
    with pytest.raises(PlaygroundError, match="did you mean 'seed'"):
        HopperConfig(controller="sed")
    with pytest.raises(PlaygroundError, match="window"):
        HopperConfig(seconds=1.0, window=2.0)
    with pytest.raises(PlaygroundError, match=r"unknown .*stance_kq"):
        HopperConfig(overrides={"stance_kq": 1.0}).load_gains()
    with pytest.raises(PlaygroundError, match="air_kv must be within"):
        HopperConfig(overrides={"air_kv": -1.0}).load_gains()
    with pytest.raises(PlaygroundError, match="does not exist"):
        HopperConfig(gains=str(tmp_path / "none.yaml")).load_gains()
    with pytest.raises(PlaygroundError, match="unknown gain 'lif'"):
        native.trials.cases(2, {"lif": np.zeros(2)})
    with pytest.raises(PlaygroundError, match=r"gain lift must be within 0 to 1\.25"):
        native.trials.cases(2, {"lift": np.array([0.05, 1.4])})
    with pytest.raises(PlaygroundError, match="command speed must be within"):
        HopperCommand(speed=3.0)


def test_gains_come_from_file_then_overrides(tmp_path):
    path = tmp_path / "gains.yaml"
    path.write_text("stance_kp: 1200\nhip_push: -0.1\n")
    config = HopperConfig(gains=str(path), overrides={"hip_push": -0.3})
    gains = config.load_gains()
    assert (gains.stance_kp, gains.hip_push, gains.air_kp) == (1200.0, -0.3, 100.0)


def test_varied_models_differ_in_mass_and_friction_within_their_spans():
    config = HopperConfig(engine="native", models=5, mass=0.2, friction=0.1)
    trials = HopperTrials(config)
    first, *others = trials.step.physics.models
    assert trials.cases(12).model.tolist() == [0, 1, 2, 3, 4, 5] * 2
    for model in others:
        scale = model.body_mass[1:] / first.body_mass[1:]
        assert (np.abs(scale - 1) <= 0.2).all() and len(set(scale)) == 3
        inertia = model.body_inertia[1:] / first.body_inertia[1:]
        np.testing.assert_allclose(inertia, np.tile(scale[:, None], 3))
        slip = model.geom_friction[:, 0] / first.geom_friction[:, 0]
        assert abs(slip[0] - 1) <= 0.1 and np.ptp(slip) < 1e-12
