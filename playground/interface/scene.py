"""What views show: a frame, the text beside it, the model it is drawn with."""

import dataclasses

import mujoco
import numpy as np

# Where a camera that follows stands, from the body it follows: in extents of the model,
# deg, deg.
_DISTANCE, _ELEVATION, _AZIMUTH = 2.0, -15.0, 140.0


@dataclasses.dataclass(frozen=True)
class Frame:
    """What a view shows.

    Attributes:
      time: s since the start.
      qpos: [nq] the robot.
      rows: (label, value) pairs that say what the robot does, in ASCII.
      realtime: simulated over real time, lately; NaN where the loop keeps no pace.
    """

    time: float
    qpos: np.ndarray
    rows: tuple[tuple[str, str], ...]
    realtime: float

    def text(self) -> list[tuple[str, str]]:
        """Returns the rows between those of every robot: its time and its pace."""
        text = [("time", f"{self.time:.1f} s"), *self.rows]
        if np.isfinite(self.realtime):
            text.append(("pace", f"{self.realtime:.2f} x real time"))
        return text


class Stage:
    """The model with its visual shapes, placed as a frame says.

    Attributes:
      model: The model.
      data: Its placement.
    """

    def __init__(self, model: mujoco.MjModel):
        """Takes the model with the visual shapes, posed as in its first keyframe."""
        self.model, self.data = model, mujoco.MjData(model)
        if model.nkey:
            mujoco.mj_resetDataKeyframe(model, self.data, 0)

    def place(self, frame: Frame) -> None:
        """Puts the robot where the frame has it."""
        self.data.qpos[:] = frame.qpos
        mujoco.mj_forward(self.model, self.data)


def follow(camera: mujoco.MjvCamera, model: mujoco.MjModel, body: int) -> None:
    """Makes a free camera follow a body; the user may still turn it."""
    camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
    camera.trackbodyid = body
    camera.distance = _DISTANCE * model.stat.extent
    camera.elevation, camera.azimuth = _ELEVATION, _AZIMUTH


def follow_model(camera: mujoco.MjvCamera, model: mujoco.MjModel) -> None:
    """Uses the model's own camera `track`, or follows whatever floats freely."""
    track = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, "track")
    if track >= 0:
        camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, track
        return
    # A robot with no free joint is followed by the body that its first joint moves.
    free = model.jnt_type == mujoco.mjtJoint.mjJNT_FREE
    follow(camera, model, int(model.jnt_bodyid[np.argmax(free)]))
