"""Open Duck Mini V2: 14 STS3215 servos, 0.42 m, 2.1 kg."""

from playground.paths import asset_folder
from playground.robots.spec import RobotSpec

_SCENES = asset_folder("xmls") / "scenes"

OPEN_DUCK = RobotSpec(
    name="open_duck",
    scenes={
        "flat": _SCENES / "open_duck_flat.xml",
        "rough": _SCENES / "open_duck_rough.xml",
        "flat_backlash": _SCENES / "open_duck_flat_backlash.xml",
        "rough_backlash": _SCENES / "open_duck_rough_backlash.xml",
        "flat_full_collision": _SCENES / "open_duck_flat_full_collision.xml",
    },
    base="trunk",
    feet=("left_foot", "right_foot"),
    servo="sts3215",
)
