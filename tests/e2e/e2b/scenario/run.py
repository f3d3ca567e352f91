"""What a program does with E2B's SDK for Python, feature by feature, as run.mjs does it for JavaScript.
usage: run.py [FEATURE...]      (the SDK's version is the one in PYTHONPATH)

Prints a line of JSON a feature: {"feature":…, "result":"ok" | "failed" | "absent", "error":…}."""
import json
import os
import sys
import time
import traceback

import lifecycle  # noqa: F401  each adds its features to the table, in this order
import commands  # noqa: F401
import files  # noqa: F401
import services  # noqa: F401
from world import FEATURES, World


def attempt(world, has, function):
    if not all(condition() for condition in has):
        return {"result": "absent"}
    start = time.monotonic()
    try:
        function(world)
        outcome = {"result": "ok"}
    except Exception as error:  # whatever it is, it is this feature's
        outcome = {"result": "failed", "error": f"{type(error).__name__}: {error}"[:2000]}
        if "E2B_STACKS" in os.environ:
            traceback.print_exc()
    return {**outcome, "ms": round((time.monotonic() - start) * 1000)}


def main(wanted):
    world = World()
    try:
        for name, has, function in FEATURES:
            if not wanted or name in wanted:
                print(json.dumps({"feature": name, **attempt(world, has, function)}), flush=True)
    finally:
        world.leave()


main(sys.argv[1:])
