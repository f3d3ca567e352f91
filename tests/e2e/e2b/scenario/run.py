"""What a program does with E2B's SDK for Python, feature by feature, as run.mjs does it for JavaScript.
usage: run.py [FEATURE...]      (the SDK's version is the one in PYTHONPATH)"""
import sys

import lifecycle  # noqa: F401  each adds its features to the table, in this order
import commands  # noqa: F401
import files  # noqa: F401
import services  # noqa: F401
from report import report
from world import FEATURES, World

world = World()
try:
    report([(name, has, lambda function=function: function(world)) for name, has, function in FEATURES], sys.argv[1:])
finally:
    world.leave()
