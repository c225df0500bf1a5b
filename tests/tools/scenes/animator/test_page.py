import re
import subprocess
import sys
from pathlib import Path

from camgraph.tools.scenes.animator import scenes
from camgraph.tools.scenes.animator.library import MOTIONS

PAGE = Path(__file__).parents[4] / "docs" / "animator.md"


def test_the_examples_of_the_page_run():
    examples = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        ended = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=True)
        assert ended.stdout


def test_the_page_names_all_scenes():
    text = PAGE.read_text("utf-8")
    public = set(scenes.__all__) - {"FRONT", "ROOM", "SCENES", "HEIGHTS_M", "alone"}
    assert {name for name in public if f"`{name}" not in text} == set()
    words = {name.split()[0] for name in MOTIONS} - {"falling"}
    assert {word for word in words if word not in text.lower()} == set()
