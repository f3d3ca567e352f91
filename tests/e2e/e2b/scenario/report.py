"""Tries features and prints a line of JSON for each, as report.mjs does."""
import json
import os
import time
import traceback


def attempt(has, function):
    if not all(condition() for condition in has):
        return {"result": "absent"}
    start = time.monotonic()
    try:
        function()
        outcome = {"result": "ok"}
    except Exception as error:  # whatever it is, it is this feature's
        outcome = {"result": "failed", "error": f"{type(error).__name__}: {error}"[:2000]}
        if "E2B_STACKS" in os.environ:
            traceback.print_exc()
    return {**outcome, "ms": round((time.monotonic() - start) * 1000)}


def report(features, wanted=()):
    """features: (name, what must hold of the SDK, function); wanted: names, or none for all."""
    for name, has, function in features:
        if not wanted or name in wanted:
            print(json.dumps({"feature": name, **attempt(has, function)}), flush=True)
