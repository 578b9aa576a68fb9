"""One-legged planar hopper: hip and sliding knee, 2 m, 2.1 kg."""

from playground.paths import asset_folder
from playground.robots.spec import RobotSpec

HOPPER = RobotSpec(
    name="hopper",
    scenes={"flat": asset_folder("xmls") / "hopper.xml"},
    base="torso",
    feet=("foot",),
    servo=None,
    base_joints=("x", "z"),
)
