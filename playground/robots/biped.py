"""Push-recovery biped: 15 torque motors, 1.8 m, 35 kg."""

from playground.paths import asset_folder
from playground.robots.spec import RobotSpec

BIPED = RobotSpec(
    name="biped",
    scenes={"flat": asset_folder("xmls") / "scenes" / "biped_flat.xml"},
    base="torso",
    feet=("left_foot", "right_foot"),
    servo=None,
)
