"""The build backend for this folder: that of the root of the sources."""

import os
from pathlib import Path

import mesonpy

TOP = Path(__file__).resolve().parent.parent.parent


def _there(name):
    function = getattr(mesonpy, name)

    def call(*args, **keywords):
        args = [os.path.abspath(a) if isinstance(a, str) else a for a in args]
        before = os.getcwd()
        os.chdir(TOP)
        try:
            return function(*args, **keywords)
        finally:
            os.chdir(before)

    call.__name__ = name
    return call


for _name in (
    'build_wheel',
    'build_sdist',
    'build_editable',
    'get_requires_for_build_wheel',
    'get_requires_for_build_sdist',
    'get_requires_for_build_editable',
):
    if hasattr(mesonpy, _name):
        globals()[_name] = _there(_name)
