"""What every model builder shares: writing MJCF text, and the floors to stand on."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

ROUGH_CELLS = 128  # samples a side
ROUGH_HALF_SIZE = 5.0  # m
ROUGH_HEIGHT = 0.02  # m, the tallest bump
ROUGH_FLAT_RADIUS = 0.30  # m, level ground about the origin
ROUGH_BLEND_RADIUS = 0.60  # m, where the bumps reach their full height
ROUGH_SEED = 7

Attributes = Mapping[str, Any]


def text(value: Any) -> str:
    """Returns `value` as MJCF attribute text, numbers in their shortest form."""
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return " ".join(text(v) for v in value)
    return repr(float(value) + 0.0).removesuffix(".0")  # + 0.0 makes -0.0 plain


def add(parent: ET.Element, tag: str, **attributes: Any) -> ET.Element:
    """Appends an element; a trailing underscore frees `class_` from the keyword."""
    named = {key.rstrip("_"): text(value) for key, value in attributes.items()}
    return ET.SubElement(parent, tag, named)


def document(root: ET.Element, header: str) -> str:
    """Returns the indented file text of a model, with a header comment."""
    root.insert(0, ET.Comment(header))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode").replace("&#10;", "\n") + "\n"


def box(bounds: Mapping[str, Sequence[float]], margin: float = 0.0) -> Attributes:
    """Returns the MJCF attributes of the box with the given corners.

    Args:
        bounds: `box_min_m` and `box_max_m`, each [3], in the body frame.
        margin: m, by which every face is moved outwards.
    """
    low, high = np.array(bounds["box_min_m"]), np.array(bounds["box_max_m"])
    pos, size = (low + high) / 2, (high - low) / 2 + margin
    return {"type": "box", "pos": pos.round(9), "size": size.round(9)}


def rough_elevation() -> np.ndarray:
    """Returns the bumps [n, n], 0 = level ground, 255 = the tallest bump.

    All arithmetic is on whole numbers, so that every machine makes the same ground.
    """
    n = ROUGH_CELLS
    noise = np.random.default_rng(ROUGH_SEED).integers(0, 256, (n, n), dtype=np.int64)
    for axis in (0, 1):  # a box blur: bumps some 20 cm across
        noise = noise + np.roll(noise, 1, axis) + np.roll(noise, -1, axis)
    index = 2 * np.arange(n) - (n - 1)  # in half cells from the middle
    squared = index[:, None] ** 2 + index[None, :] ** 2
    half_cell = ROUGH_HALF_SIZE / (n - 1)
    inner = round((ROUGH_FLAT_RADIUS / half_cell + 2) ** 2)  # a cell of slack
    outer = round((ROUGH_BLEND_RADIUS / half_cell) ** 2)
    bumps = (noise - noise.min()) * np.clip(squared - inner, 0, outer - inner)
    return bumps * 255 // bumps.max()


def add_ground(asset: ET.Element, kind: str) -> Attributes:
    """Adds the height field of a rough floor; returns the shape of the floor geom."""
    if kind == "flat":
        return {"type": "plane", "size": [0, 0, 0.05]}
    bumps = rough_elevation()
    # The heights stand in the file itself: MuJoCo looks for an asset file beside the
    # outermost file, so a floor with a separate image could not be included from
    # another folder and also load alone.
    rows = "\n".join(text(row) for row in bumps)
    grid = {"nrow": ROUGH_CELLS, "ncol": ROUGH_CELLS, "elevation": f"\n{rows}\n"}
    size = [ROUGH_HALF_SIZE, ROUGH_HALF_SIZE, ROUGH_HEIGHT, 0.1]
    add(asset, "hfield", name="rough", size=size, **grid)
    return {"type": "hfield", "hfield": "rough"}


def floor_xml(kind: str, friction: float, header: str) -> str:
    """Returns the MJCF text of sky, light and floor.

    Args:
        kind: "flat" or "rough".
        friction: sliding friction of the floor; it wins over that of any robot.
        header: comment at the top of the file.
    """
    root = ET.Element("mujoco", model=f"floor_{kind}")
    visual = add(root, "visual")
    view = {"azimuth": 140, "elevation": -15}
    add(visual, "global", offwidth=1920, offheight=1080, **view)
    light = {"ambient": [0.42] * 3, "diffuse": [0.30] * 3, "specular": [0.1] * 3}
    add(visual, "headlight", **light)
    add(visual, "quality", shadowsize=4096)
    add(visual, "map", znear=0.02, zfar=60, shadowclip=5)
    asset = add(root, "asset")
    size = {"width": 512, "height": 512}
    sky = {"rgb1": [0.55, 0.70, 0.86], "rgb2": [0.93, 0.95, 0.97], **size}
    add(asset, "texture", type="skybox", builtin="gradient", **sky)
    squares = {"rgb1": [0.37, 0.44, 0.50], "rgb2": [0.42, 0.49, 0.55]}
    edge = {"mark": "edge", "markrgb": [0.50, 0.56, 0.61]}
    kind_ = {"type": "2d", "builtin": "checker", **edge}
    add(asset, "texture", name="floor", **kind_, **squares, **size)
    tiles = {"texuniform": "true", "texrepeat": [4, 4], "reflectance": 0.06}
    add(asset, "material", name="floor", texture="floor", **tiles)
    shape = add_ground(asset, kind)
    world = add(root, "worldbody")
    fill = {"pos": [0, 0, 3], "dir": [0.5, -0.3, -1], "diffuse": [0.22] * 3}
    add(world, "light", name="fill", type="directional", castshadow="false", **fill)
    touch = {"contype": 1, "conaffinity": 0, "condim": 3, "priority": 1}
    rub = {"friction": [friction, 0.005, 0.0001]}
    add(world, "geom", name="floor", material="floor", **shape, **touch, **rub)
    return document(root, header)
