"""How capture reads: video files, folders of pictures, live cameras; their times, and which frames are taken."""
