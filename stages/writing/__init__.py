"""Files that are written so that a kill or a full disk costs no more than it must."""
