"""Cameras that are none: looping RTSP streams of clips on loopback, with faults at will."""

from tools.farm.accounts import CameraCounts, FrameSent
from tools.farm.farm import CameraHandle, Farm
from tools.farm.faults import Fault, ScheduledFault, parse_fault
from tools.farm.settings import CameraSettings, ClipSettings

__all__ = [
    "CameraCounts",
    "CameraHandle",
    "CameraSettings",
    "ClipSettings",
    "Farm",
    "Fault",
    "FrameSent",
    "ScheduledFault",
    "parse_fault",
]
