"""People made of numbers: 3D bodies that walk, sit, fall and wave, seen as a camera and a pose model would see them.

Their identities, joints and actions are known, so trackers and rules can be measured on them. `docs/animator.md`
describes all of it. From a motion to the messages that a tracker gets:

    body, pose          limbs and their lengths; a posture as numbers
    kinematics          from poses to joints in the world, and back for feet and hands
    motion              motions that follow each other: keyframes, postures that are kept
    walking, gestures   feet on a path; arms and head over any motion
    library             the motions by name
    camera, silhouette  pixels; what hides what
    glimpse             everybody at one moment, without noise
    pose_model          how noisy a model is
    observer            the same moment as the model reports it
    scene, scenes       actors and furniture; ready-made ones
    messages            frames as `People` and as `Tracks` with the true ids

Start with `scene.py`. `camgraph.tools.lab.motion_sheet` draws motions for people to look at.
"""

from camgraph.tools.scenes.animator.body import Body
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.pose_model import MULTIPOSE, PERFECT, YOLO11N, PoseModel
from camgraph.tools.scenes.animator.scene import Actor, Rhythm, Scene, Seen, Truth
from camgraph.tools.scenes.animator.silhouette import Block

__all__ = [
    "MULTIPOSE",
    "PERFECT",
    "YOLO11N",
    "Actor",
    "Block",
    "Body",
    "Camera",
    "PoseModel",
    "Rhythm",
    "Scene",
    "Seen",
    "Truth",
]
