"""The Open Duck Mini V2 models against the measured figures they are built from."""

import json
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
import yaml
from mujoco import mjx

ROOT = Path(__file__).resolve().parent.parent
XMLS = ROOT / "xmls"
FIGURES = json.loads((ROOT / "tools" / "open_duck_mini_v2.json").read_text("utf-8"))
SERVO = yaml.safe_load((ROOT / "configs" / "servos.yaml").read_text("utf-8"))["sts3215"]
ROBOTS = {
    "plain": XMLS / "open_duck_mini_v2.xml",
    "backlash": XMLS / "open_duck_mini_v2_backlash.xml",
    "full_collision": XMLS / "open_duck_mini_v2_full_collision.xml",
}
SCENES = sorted((XMLS / "scenes").glob("open_duck_*.xml"))
FEET = ("left_foot", "right_foot")
SOLES = {"left_foot_sole", "right_foot_sole"}
TOLERANCE = 1e-6

_models: dict[Path, mujoco.MjModel] = {}


def load(path: Path) -> mujoco.MjModel:
    """Returns the compiled model of a file; models are read, never changed."""
    if path not in _models:
        _models[path] = mujoco.MjModel.from_xml_path(str(path))
    return _models[path]


def at_home(model: mujoco.MjModel) -> mujoco.MjData:
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    mujoco.mj_forward(model, data)
    return data


def rotation(quat: np.ndarray) -> np.ndarray:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.asarray(quat, float))
    return matrix.reshape(3, 3)


def inertia_tensor(figures: dict[str, float]) -> np.ndarray:
    i = figures
    return np.array(
        [
            [i["ixx"], i["ixy"], i["ixz"]],
            [i["ixy"], i["iyy"], i["iyz"]],
            [i["ixz"], i["iyz"], i["izz"]],
        ]
    )


def names(model: mujoco.MjModel, kind: mujoco.mjtObj, count: int) -> list[str]:
    return [mujoco.mj_id2name(model, kind, i) for i in range(count)]


def colliding(model: mujoco.MjModel) -> set[str]:
    hit = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    return {model.geom(i).name for i in np.flatnonzero(hit)}


@pytest.fixture(params=ROBOTS)
def robot(request: pytest.FixtureRequest) -> mujoco.MjModel:
    return load(ROBOTS[request.param])


@pytest.mark.parametrize("body", FIGURES["bodies"], ids=lambda body: body["name"])
def test_link_is_as_measured(robot: mujoco.MjModel, body: dict) -> None:
    link = robot.body(body["name"])
    assert link.mass[0] == pytest.approx(body["mass_kg"], abs=TOLERANCE)
    np.testing.assert_allclose(link.ipos, body["com_m"], atol=TOLERANCE)
    turn = rotation(link.iquat)
    tensor = turn @ np.diag(link.inertia) @ turn.T
    # Inertias are about 1e-5 kg.m2, so theirs is a tolerance of their own.
    expected = inertia_tensor(body["inertia_kgm2"])
    np.testing.assert_allclose(tensor, expected, rtol=1e-6, atol=1e-10)
    if "joint" not in body:
        assert link.jntnum[0] == 1 and robot.joint("floating_base").id == 0
        return
    assert robot.body(link.parentid[0]).name == body["parent"]
    np.testing.assert_allclose(link.pos, body["pos_m"], atol=TOLERANCE)
    turn = rotation(np.array(body["quat_wxyz"]))
    np.testing.assert_allclose(rotation(link.quat), turn, atol=TOLERANCE)
    joint = robot.joint(body["joint"]["name"])
    assert joint.bodyid[0] == link.id and joint.limited[0]
    np.testing.assert_allclose(joint.axis, body["joint"]["axis"], atol=TOLERANCE)
    np.testing.assert_allclose(joint.range, body["joint"]["range_rad"], atol=TOLERANCE)


def test_masses_add_up_and_no_link_is_massless(robot: mujoco.MjModel) -> None:
    assert robot.nbody == 1 + len(FIGURES["bodies"])
    assert (robot.body_mass[1:] > 0).all() and (robot.body_inertia[1:] > 0).all()
    total = robot.body_mass.sum()
    assert total == pytest.approx(FIGURES["total_mass_kg"], abs=1e-5)


def test_servos_follow_the_preset_in_order(robot: mujoco.MjModel) -> None:
    order = FIGURES["actuator_order"]
    assert names(robot, mujoco.mjtObj.mjOBJ_ACTUATOR, robot.nu) == order
    for name in order:
        actuator, joint = robot.actuator(name), robot.joint(name)
        assert actuator.trnid[0] == joint.id
        assert actuator.gainprm[0] == SERVO["kp"]
        np.testing.assert_allclose(actuator.biasprm[1:3], [-SERVO["kp"], -SERVO["kv"]])
        limit = SERVO["force_limit"]
        np.testing.assert_allclose(actuator.forcerange, [-limit, limit])
        np.testing.assert_allclose(actuator.ctrlrange, joint.range)
        for key in ("damping", "frictionloss", "armature"):
            assert getattr(joint, key)[0] == SERVO[key]


@pytest.mark.parametrize("variant", ["backlash", "full_collision"])
def test_each_servo_has_play_on_its_own_axis(variant: str) -> None:
    model = load(ROBOTS[variant])
    assert model.njnt == 1 + 2 * len(FIGURES["actuator_order"])
    for name in FIGURES["actuator_order"]:
        joint, play = model.joint(name), model.joint(f"{name}_backlash")
        assert play.id == joint.id + 1 and play.bodyid[0] == joint.bodyid[0]
        np.testing.assert_array_equal(play.axis, joint.axis)
        np.testing.assert_array_equal(play.pos, joint.pos)
        half = SERVO["backlash"]
        np.testing.assert_allclose(play.range, [-half, half], rtol=1e-12)
        for key in ("damping", "frictionloss", "armature"):
            assert getattr(play, key)[0] == SERVO[f"backlash_{key}"]


def test_sites_are_as_measured(robot: mujoco.MjModel) -> None:
    sites = {"imu": FIGURES["imu_site"], **FIGURES["foot_sites"]}
    sites["head"] = {"body": "head", **FIGURES["head_site"]}
    for name, figures in sites.items():
        site = robot.site(name)
        assert robot.body(site.bodyid[0]).name == figures["body"]
        np.testing.assert_allclose(site.pos, figures["pos_m"], atol=TOLERANCE)
        turn = rotation(np.array(figures["quat_wxyz"]))
        np.testing.assert_allclose(rotation(site.quat), turn, atol=TOLERANCE)


def test_soles_have_the_measured_bounds_inside_their_touch_site(
    robot: mujoco.MjModel,
) -> None:
    sole = FIGURES["sole"]
    for foot in FEET:
        geom, touch = robot.geom(f"{foot}_sole"), robot.site(f"{foot}_touch")
        low, high = geom.pos - geom.size, geom.pos + geom.size
        np.testing.assert_allclose(low, sole["box_min_m"], atol=TOLERANCE)
        np.testing.assert_allclose(high, sole["box_max_m"], atol=TOLERANCE)
        assert geom.type[0] == mujoco.mjtGeom.mjGEOM_BOX and geom.condim[0] == 3
        np.testing.assert_allclose(rotation(geom.quat), np.eye(3), atol=TOLERANCE)
        np.testing.assert_allclose(touch.pos, geom.pos)
        assert (touch.size > geom.size).all()


def test_home_is_the_measured_pose_with_the_lowest_corner_on_the_ground(
    robot: mujoco.MjModel,
) -> None:
    data = at_home(robot)
    home = FIGURES["home_pose_rad"]
    for name, angle in home.items():
        assert data.joint(name).qpos[0] == pytest.approx(angle, abs=TOLERANCE)
        assert data.ctrl[robot.actuator(name).id] == pytest.approx(angle, abs=TOLERANCE)
    for joint in names(robot, mujoco.mjtObj.mjOBJ_JOINT, robot.njnt):
        if joint.endswith("_backlash"):
            assert data.joint(joint).qpos[0] == 0
    signs = np.array(list(np.ndindex(2, 2, 2))) * 2 - 1
    lowest = np.inf
    for foot in FEET:
        geom = data.geom(f"{foot}_sole")
        corners = (signs * robot.geom(f"{foot}_sole").size) @ geom.xmat.reshape(3, 3).T
        lowest = min(lowest, (geom.xpos + corners)[:, 2].min())
    assert lowest == pytest.approx(0, abs=TOLERANCE)


def test_home_feet_mirror_each_other(robot: mujoco.MjModel) -> None:
    data = at_home(robot)
    left, right = (data.sensor(f"{foot}_pos").data for foot in FEET)
    # The measured home pose itself differs by 0.7 degrees between the sides.
    np.testing.assert_allclose(left * [1, -1, 1], right, atol=1e-3)
    left, right = (data.sensor(f"{foot}_upvector").data for foot in FEET)
    np.testing.assert_allclose(left * [1, -1, 1], right, atol=0.02)


def test_sensors_exist_and_read_the_named_quantity(robot: mujoco.MjModel) -> None:
    widths = {"gyro": 3, "accelerometer": 3, "local_linvel": 3, "global_linvel": 3}
    widths |= {"upvector": 3, "forwardvector": 3, "global_angvel": 3, "position": 3}
    widths |= {"orientation": 4, "head_orientation": 4, "head_upvector": 3}
    widths |= {"com": 3, "com_linvel": 3}
    widths |= {f"{joint}_torque": 1 for joint in FIGURES["actuator_order"]}
    for foot in FEET:
        widths |= {f"{foot}_{name}": 3 for name in ("pos", "linvel", "upvector")}
        widths |= {f"{foot}_quat": 4, f"{foot}_contact": 1, f"{foot}_force": 1}
    found = names(robot, mujoco.mjtObj.mjOBJ_SENSOR, robot.nsensor)
    assert {name: int(robot.sensor(name).dim[0]) for name in found} == widths
    data = at_home(robot)
    np.testing.assert_allclose(data.sensor("upvector").data, [0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(data.sensor("head_upvector").data, [0, 0, 1], atol=1e-3)
    np.testing.assert_allclose(data.sensor("position").data, data.site("imu").xpos)
    for foot in FEET:
        assert data.sensor(f"{foot}_upvector").data[2] > 0.99


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_only_soles_and_floor_collide(path: Path) -> None:
    model = load(path)
    shells = {"trunk_collision", "head_collision"} if "full" in path.stem else set()
    assert colliding(model) == SOLES | shells | {"floor"}
    floor = model.geom("floor")
    assert (floor.contype[0], floor.conaffinity[0], floor.priority[0]) == (1, 0, 1)
    assert floor.friction[0] == FIGURES["floor_friction_sliding"]
    for name in SOLES | shells:
        assert (model.geom(name).contype[0], model.geom(name).conaffinity[0]) == (0, 1)
    data = at_home(model)
    mujoco.mj_step(model, data)
    np.testing.assert_allclose(data.contact.friction[:, 0], floor.friction[0])
    assert model.camera("track").mode[0] == mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_home_stands(path: Path) -> None:
    model = load(path)
    data = at_home(model)
    for _ in range(round(2.0 / model.opt.timestep)):
        mujoco.mj_step(model, data)
    assert data.sensor("upvector").data[2] > 0.95
    force = sum(data.sensor(f"{foot}_force").data[0] for foot in FEET)
    weight = FIGURES["total_mass_kg"] * -model.opt.gravity[2]
    assert force == pytest.approx(weight, rel=0.02)
    assert all(data.sensor(f"{foot}_contact").data[0] > 0 for foot in FEET)
    assert not data.warning.number.any()


def test_rough_floor_is_flat_where_the_robot_starts() -> None:
    model = load(XMLS / "floor_rough.xml")
    field = model.hfield("rough")
    heights = np.array(field.data).reshape(field.nrow[0], field.ncol[0]) * field.size[2]
    xs = np.linspace(-1, 1, field.ncol[0]) * field.size[0]
    ys = np.linspace(-1, 1, field.nrow[0]) * field.size[1]
    radius = np.hypot(xs[None, :], ys[:, None])
    assert field.size[:2].min() >= 3 and heights.max() == pytest.approx(0.02)
    assert (heights[radius < 0.3] == 0).all()
    assert heights[radius > 0.6].std() > 0.001


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_mjx_accepts_the_scene(path: Path) -> None:
    model = mjx.put_model(load(path), impl="jax")
    assert mjx.make_data(model).sensordata.shape == (load(path).nsensordata,)


def test_files_equal_what_the_tool_writes() -> None:
    command = [sys.executable, str(ROOT / "tools" / "build_open_duck.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
