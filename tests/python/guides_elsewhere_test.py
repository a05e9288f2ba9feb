"""Programs as Ray's guides have them, each under pytest and in a notebook's kernel."""

import pytest
from guide_programs import CHECKS, Ways, facts_of, guide  # noqa: F401  guide is a fixture


@pytest.mark.parametrize("way", ["pytest", "kernel"])
def test_guide(programs, tmp_path, guide, way):
    ways = Ways(programs, guide)
    CHECKS[guide](ways.storage, facts_of(getattr(ways, way)()), tmp_path)
