"""The dashboard and the alert rules load, and ask for metrics that there are."""
import json
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KNOWN = set(re.findall(r'"((?:holt|process)_[a-z_]+)"', (ROOT / "src/telemetry/metric_table.c").read_text()))
RULES = ROOT / "deploy/prometheus/alerts.yml"
BOARD = ROOT / "deploy/grafana/holt.json"


def asked_for(text):
    return {re.sub(r"_(bucket|count|sum)$", "", name) if name not in KNOWN else name
            for name in re.findall(r"\b(?:holt|process)_[a-z_]+", text)}


def test_the_dashboard_asks_for_metrics_that_there_are():
    board = json.loads(BOARD.read_text())
    texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(texts) > 10 and len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for text in texts:
        assert asked_for(text) and asked_for(text) <= KNOWN, text


def test_the_rules_ask_for_metrics_that_there_are():
    texts = re.findall(r"expr: (.*)", RULES.read_text())
    assert len(texts) > 5
    for text in texts:
        assert asked_for(text) and asked_for(text) <= KNOWN, text


def test_promtool_takes_the_rules():
    if not shutil.which("promtool"):
        pytest.skip("no promtool here (Debian: prometheus)")
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
