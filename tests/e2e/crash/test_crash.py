"""Rounds of a mixed load with kill -9 of random parts at random moments. ROUNDS says how many, SEED repeats
a run (as far as the machine's timing allows)."""
import os
import random
import signal
import time

import accounts
from load import Load
from support import machine
from support.daemon import Daemon
from world import World

ROUNDS = int(os.environ.get("ROUNDS", "10"))
SEED = os.environ.get("SEED") or str(random.randrange(1 << 32))
VICTIMS = [("daemon",), ("launcher",), ("daemon", "launcher"), ("keeper",), ("keeper", "daemon", "launcher")]


def start_again(daemon, chance):
    """As a service manager does it: tries until the directory is free. Some starts are killed, too."""
    end = time.monotonic() + 60
    while True:
        daemon.process.wait(60)
        assert time.monotonic() < end, f"it does not start again:\n{daemon.log()[-3000:]}"
        daemon.start(wait=False)
        if chance.random() < 0.3:
            time.sleep(chance.uniform(0, 0.4))
            roles = chance.choice(VICTIMS)
            daemon.kill(*roles)
            if roles != ("launcher",):
                daemon.process.kill()  # what it would have done by itself, unless it was too early for that
                continue
        while not daemon.greeting() and daemon.process.poll() is None:
            time.sleep(0.01)
        if daemon.greeting():
            daemon.wait_started()
            return
        time.sleep(0.1)


def strike(daemon, chance):
    """Kills something. Returns what, and whether the daemon has to be started again."""
    if chance.random() < 0.1:
        daemon.note_parts()
        daemon.process.send_signal(signal.SIGTERM)
        return "SIGTERM", True
    roles = chance.choice(VICTIMS)
    daemon.kill(*roles)
    return "+".join(roles), roles != ("launcher",)


def test_whatever_is_killed_nothing_acknowledged_is_lost():
    chance = random.Random(SEED)
    print(f"SEED={SEED} ROUNDS={ROUNDS}")
    mounts = machine.mounts()
    with Daemon("--pool-min", "2") as daemon:
        world = World(daemon)
        load = Load(world, SEED)
        try:
            for number in range(ROUNDS):
                load.run()
                time.sleep(chance.uniform(0.05, 0.7))
                what, is_down = strike(daemon, chance)
                time.sleep(chance.uniform(0, 0.3))
                if is_down:
                    load.halt()
                    start_again(daemon, chance)
                else:
                    time.sleep(chance.uniform(0.2, 1))
                    load.halt()
                print(f"round {number}: {what}, {len(world.boxes)} sandboxes, {load.steps} steps, {load.lost} lost")
                world.check(files=number % 5 == 4 or number == ROUNDS - 1)
                if number % 5 == 4 or number == ROUNDS - 1:
                    accounts.check(world)
                world.forget_gone()
                assert not daemon.complaints(), daemon.complaints()
        finally:
            load.finish()
        assert load.steps > ROUNDS
    assert machine.mounts() == mounts
