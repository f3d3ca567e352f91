"""The template e2b: a machine of one's own, with a home, a root that can be written to, and sudo."""
import os
import pathlib
import shutil

import pytest

from support.daemon import IS_ROOT, until
from support.sockets import Socket
from test_pty import read_until

# Without privilege a box has one user, and sudo says so.
ROOT = "root" if IS_ROOT else "user"
NOTE = "" if IS_ROOT else "sudo: this box has one user: no change to 'root'\n"


@pytest.fixture(scope="module")
def made(daemon):
    one = daemon.api.sandbox("e2b")
    yield one
    one.delete().must(204, 404)


@pytest.fixture
def home(api, made):
    """The box that most tests share: none of them leaves a process behind."""
    return type(made)(api, made.value)


@pytest.fixture
def own(api):
    one = api.sandbox("e2b")
    yield one
    one.delete().must(204, 404)


def output(box, command, **fields):
    value = box.run(command, **fields)
    assert value["exitCode"] == 0, value
    return value["stdout"]


def running(box, name):
    """How many processes of that name live in the box, as its root sees them."""
    return int(output(box, f"sudo sh -c 'cat /proc/[0-9]*/comm 2>/dev/null' 2>/dev/null | grep -cx {name} || true"))


# --- who and where -----------------------------------------------------------------------------------

def test_a_program_runs_as_the_user_at_home(home):
    assert output(home, "id -un; id -u; id -g; pwd; echo $HOME $USER $LOGNAME $SHELL") == (
        "user\n1000\n1000\n/home/user\n/home/user user user /bin/bash\n")
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin:/usr/local/cargo/bin\n"
    assert output(home, "echo $PATH") == output(home, "bash -l -c 'echo $PATH'") == path
    assert output(home, "stat -c '%a %U' /home/user /tmp") == "755 user\n1777 user\n"
    assert output(home, "touch ~/mine && echo ok > /tmp/mine && cat /tmp/mine") == "ok\n"


def test_a_program_of_root_has_his_home(home, needs_root):
    value = home.begin("id -un; id -u; cd; pwd; echo $HOME $USER $LOGNAME; touch /0 && rm /0", user="root").wait()
    assert (value["exitCode"], value["stdout"]) == (0, "root\n0\n/root\n/root root root\n")


def test_where_there_is_no_root_asking_for_him_is_refused(home):
    if IS_ROOT:
        pytest.skip("here there is one")
    value = home.begin("id", user="root").wait()
    assert value["status"] == "failed" and "not an id of this box" in value["reason"], value


def test_what_programs_expect_is_there(home):
    assert output(home, "python -c 'print(6*7)'; python3 -c 'print(6*7)'") == "42\n42\n"
    assert output(home, "TERM=xterm tput cols") == "80\n"
    for name in ("git", "curl", "node"):
        if shutil.which(name):
            assert output(home, f"{name} --version")
    assert output(home, "bash -l -c 'echo ok'") == "ok\n"


# --- the root ----------------------------------------------------------------------------------------

PLACES = ["/0", "/opt/x", "/etc/x", "/usr/local/bin/x", "/usr/bin/x", "/usr/lib/x", "/var/x", "/home/x", "/root/x",
          "/srv/x", "/run/x"]


def test_root_writes_everywhere_and_it_is_in_this_box_alone(own, home):
    for path in PLACES:
        output(own, f"sudo sh -c 'echo {path} > {path}' && cat {path} || exit 1")
        assert home.run(f"test -e {path}")["exitCode"] == 1
    assert not any(os.path.exists(path) for path in PLACES)
    # What is there already is replaced, as installers do it.
    before = pathlib.Path("/usr/bin/env").read_bytes()
    output(own, "printf '#!/bin/sh\\necho other\\n' > new && chmod +x new && sudo mv new /usr/bin/env")
    assert output(own, "env") == "other\n"
    assert pathlib.Path("/usr/bin/env").read_bytes() == before
    output(own, "sudo rm -rf /usr/share/doc && test ! -e /usr/share/doc")
    assert pathlib.Path("/usr/share").is_dir()


def test_files_of_etc_are_roots(own):
    output(own, "echo 127.0.0.1 other | sudo tee -a /etc/hosts; sudo sed -i s/sandbox/here/ /etc/hostname")
    assert "other" in output(own, "cat /etc/hosts") and output(own, "cat /etc/hostname") == "here\n"
    assert own.run("echo x >> /etc/hosts")["exitCode"] == (1 if IS_ROOT else 0)


def test_root_gives_files_away_and_reads_those_of_others(own, needs_root):
    output(own, "echo secret > mine && chmod 600 mine && test $(sudo cat mine) = secret")
    output(own, "sudo touch /x && sudo chown user:user /x && echo y > /x && sudo chown 1234 /x")
    assert output(own, "stat -c %u /x") == "1234\n"
    assert own.run("echo z > /x")["exitCode"] == 1
    assert output(own, "sudo sh -c 'echo more > /dev/stdout'") == "more\n"  # a pipe of the user's


def test_files_of_the_machine_are_nobodys(home, needs_root):
    for command in ("echo x >> /usr/bin/env", "chmod 777 /usr/bin/env", "chown user /usr/bin/env"):
        assert home.run(f"sudo sh -c '{command}'")["exitCode"] != 0
    assert output(home, "sudo stat -c %U /usr/bin/env") == "nobody\n"


def test_what_root_has_changed_is_in_snapshots(api, own):
    output(own, "echo one | sudo tee /0 /etc/one /usr/local/one; sudo rm -f /etc/hostname; echo two > two")
    ident = layers_or_skip(api.post(f"{own.path}/snapshots", {})).must(201).json["id"]
    other = type(own)(api, api.post("/sandboxes", {"snapshot": ident}).must(201).json)
    assert output(other, "cat /0 /etc/one /usr/local/one two; test ! -e /etc/hostname") == "one\n" * 3 + "two\n"
    assert output(other, "sudo id -un; sudo touch /usr/local/more; pwd") == f"{ROOT}\n/home/user\n"
    other.delete().must(204)
    api.delete(f"/snapshots/{ident}").must(204)


def layers_or_skip(answer):
    if answer.status == 409:
        pytest.skip(answer.json["error"]["message"])
    return answer


def test_forks_and_other_lives_have_it_too(api, own):
    output(own, "echo one | sudo tee /0 /usr/local/one")
    made = layers_or_skip(api.post(f"{own.path}/fork", {})).must(201).json
    fork = type(own)(api, made["items"][0] if "items" in made else made)
    assert output(fork, "cat /0 /usr/local/one; sudo id -un") == f"one\none\n{ROOT}\n"
    fork.delete().must(204)
    layers_or_skip(api.post(f"{own.path}/stop")).must(200, 202, 204)
    api.post(f"{own.path}/start").must(200, 202, 204)
    until(lambda: own.get()["status"] == "running", what="the next life")
    assert output(own, "cat /0 /usr/local/one; sudo id -un") == f"one\none\n{ROOT}\n"


def test_steps_of_a_build_are_roots_work_too(api):
    steps = [{"type": "RUN", "args": ["sudo sh -c 'echo built > /usr/local/built' && echo mine > ~/mine"]},
             {"type": "USER", "args": ["root"]}, {"type": "RUN", "args": ["cat /usr/local/built > /0"]}]
    made = api.post("/templates/builds", {"name": "built", "from": "e2b",
                                          "steps": steps if IS_ROOT else steps[:1]}).must(202).json
    with api.events("GET", f"/templates/builds/{made['id']}/events") as events:
        list(events)
    made = api.get(f"/templates/builds/{made['id']}").must(200).json
    if made["reason"] and "freezer" in made["reason"]:
        pytest.skip(made["reason"])
    assert made["status"] == "ready", made
    one = api.sandbox(made["template"])
    assert output(one, "cat /usr/local/built ~user/mine; sudo id -un") == f"built\nmine\n{ROOT}\n"
    assert not IS_ROOT or output(one, "cat /0") == "built\n"
    one.delete().must(204)
    for each in api.get("/templates").must(200).json["items"]:
        if each["name"].startswith("built:"):
            api.delete(f"/templates/{each['id']}").must(204)
    api.delete("/templates/cache").must(204)


def test_a_template_that_begins_with_it_has_it_all(api):
    value = api.post("/templates", {"name": "mine", "from": "e2b", "env": {"A": "b"}}).must(201).json
    one = api.sandbox("mine:1")
    assert output(one, "pwd; sudo id -un; echo $A; sudo touch /0 && ls /0") == f"/home/user\n{ROOT}\nb\n/0\n"
    one.delete().must(204)
    api.delete(f"/templates/{value['id']}").must(204)


def test_boxes_wait_in_a_pool_as_others_do(api):
    value = api.post("/warmpools", {"name": "machines", "runtime": "e2b", "minSize": 1, "maxSize": 2}).must(201).json
    until(lambda: api.get("/warmpools/machines/status").must(200).json["ready"] >= 1, what="a box that waits")
    one = api.sandbox("e2b")
    assert one.value["start"] == "warm"
    assert output(one, "sudo id -un") == f"{ROOT}\n"
    one.delete().must(204)
    api.delete(f"/warmpools/{value['id']}").must(204)


# --- sudo --------------------------------------------------------------------------------------------

def test_sudo_gives_root(home):
    value = home.run("sudo whoami")
    assert (value["exitCode"], value["stdout"], value["stderr"]) == (0, f"{ROOT}\n", NOTE)
    assert output(home, "sudo mkdir -p /opt/made && test -d /opt/made && sudo rmdir /opt/made && echo ok") == "ok\n"
    assert output(home, "sudo sudo sudo id -un") == f"{ROOT}\n"
    if shutil.which("apt-get"):
        assert output(home, "sudo apt-get --version").startswith("apt ")


@pytest.mark.parametrize("command, code", [
    ("true", 0), ("false", 1), ("sh -c 'exit 77'", 77), ("sh -c 'kill -TERM $$'", 143), ("sh -c 'kill -KILL $$'", 137),
    ("no-such-program", 1), ("/etc/passwd", 1), ("-u no-such-user true", 1), ("-x true", 1), ("-D /nowhere true", 1),
    ("", 1), ("-n -- true", 0), ("-v", 0), ("-k", 0), ("-l", 0), ("--version", 0), ("-e /etc/passwd", 1)])
def test_it_ends_as_the_command_does(home, command, code):
    value = home.run(f"sudo {command}; exit $?")
    assert value["exitCode"] == code, value
    assert code != 1 or command == "false" or "sudo: " in value["stderr"]


def test_streams_are_the_callers(home):
    assert output(home, "echo hello | sudo cat") == "hello\n"
    value = home.run("sudo sh -c 'echo out; echo err >&2' 2>&1 1>/dev/null")
    assert value["stdout"] == NOTE + "err\n"
    assert output(home, "sudo cat < /dev/null; sudo echo closed <&- ") == "closed\n"
    assert output(home, "head -c 3000000 /dev/zero | sudo cat | wc -c") == "3000000\n"
    assert output(home, "cd /var && sudo pwd; sudo -D /opt pwd; cd; mkdir d; cd d; rmdir ../d; sudo echo still") == (
        "/var\n/opt\nstill\n")


def test_variables_are_those_of_another_sudo(home):
    said = output(home, "A=1 B=2 LANG=C sudo env")
    lines = dict(line.split("=", 1) for line in said.splitlines())
    assert "A" not in lines and lines["LANG"] == "C" and lines["SUDO_UID"] == "1000" and lines["SUDO_USER"] == "user"
    assert (lines["USER"], lines["LOGNAME"]) == (ROOT, ROOT)
    assert lines["HOME"] == ("/root" if IS_ROOT else "/home/user")
    assert output(home, "A=1 B=2 sudo -E sh -c 'echo $A$B $HOME'") == "12 /home/user\n"
    assert output(home, "A=1 B=2 sudo --preserve-env=B sh -c 'echo $A$B'") == "2\n"
    assert output(home, "sudo C=3 D='4 5' sh -c 'echo $C $D'") == "3 4 5\n"
    assert output(home, "sudo -i pwd") == ("/root\n" if IS_ROOT else "/home/user\n")
    assert output(home, "sudo -s echo 'a  b' '*'") == "a  b *\n"


def test_another_user_than_root(home, needs_root):
    assert output(home, "sudo -u nobody id -un; sudo -u '#1234' id -u; sudo -u user id -un") == "nobody\n1234\nuser\n"
    # Only the box's user and its root may ask.
    value = home.run("sudo -u nobody sudo id")
    assert value["exitCode"] == 1 and "may not become another" in value["stderr"]
    assert "not an id of this box" in home.run("sudo -u '#70000' id")["stderr"]


def test_signals_are_passed_on(home):
    one = home.begin("exec sudo sh -c 'trap \"echo got; exit 3\" TERM; echo ready; while :; do sleep 0.05; done'")
    one.wait_for_output("ready")
    one.signal("TERM").must(204)
    value = one.wait()
    assert value["exitCode"] == 3 and value["stdout"] == "ready\ngot\n"


def test_what_kills_sudo_kills_the_command(own):
    one = own.begin("exec sudo sh -c 'echo ready; exec sleep 1234'")
    one.wait_for_output("ready")
    assert running(own, "sleep") == 1
    one.signal("KILL").must(204)
    one.wait()
    until(lambda: running(own, "sleep") == 0, what="the end of the command")


def test_a_deadline_reaches_what_root_has_started(own):
    command = "sudo sh -c 'setsid sleep 1234 & setsid -f sleep 1235; sleep 1236'"
    value = own.run(command, timeout=2)
    assert value["status"] == "timeout", value
    assert running(own, "sleep") == 0


def test_a_cancel_ends_the_whole_tree(own):
    one = own.begin("sudo sh -c 'setsid -f sleep 1234; echo ready; sleep 1235'")
    one.wait_for_output("ready")
    one.cancel().must(200, 202, 204)
    one.wait()
    assert running(own, "sleep") == 0


def test_what_goes_on_behind_it_is_the_executions_too(own):
    assert output(own, "sudo sh -c 'sleep 1234 >/dev/null 2>&1 & echo done'") == "done\n"
    assert running(own, "sleep") == 1
    output(own, "sudo pkill sleep")
    until(lambda: running(own, "sleep") == 0, what="the end of the process")


def test_nothing_is_said_to_be_left_behind_when_nothing_is(home):
    assert not any(home.run("sudo true")["leftovers"] for _ in range(20))


def test_too_many_at_once_are_told_so(api):
    one = api.sandbox("e2b", resources={"pids": 256})
    many = one.begin("for i in $(seq 32); do sudo sh -c 'echo up; exec sleep 1234' & done; wait")
    until(lambda: many.get()["stdout"].count("up\n") == 32, what="as many as there may be")
    value = one.run("sudo true")
    assert value["exitCode"] == 1 and "too many commands at once" in value["stderr"]
    assert one.run("true")["exitCode"] == 0
    many.cancel().must(200, 202, 204)
    many.wait()
    until(lambda: one.run("sudo true")["exitCode"] == 0, what="room for another")
    one.delete().must(204)


def test_in_a_terminal_a_shell_of_root_has_a_terminal(home):
    prompt = b"# " if IS_ROOT else b"$ "
    with Socket(home.api, f"{home.path}/pty?rows=31&cols=97") as socket:
        socket.next("start")
        read_until(socket, b"$ ")
        socket.send_bytes(b"sudo cat\n")
        read_until(socket, b"sudo cat\r\n")
        socket.send_bytes(b"typed\n")
        read_until(socket, b"typed\r\ntyped\r\n")
        socket.send_bytes(b"\x03")
        read_until(socket, b"$ ")
        socket.send_bytes(b"sudo -s\n")
        data = read_until(socket, b"\n", then=prompt)
        assert b"job control" not in data
        socket.send_bytes(b"stty size; echo $((6*7)); tty\n")
        data = read_until(socket, b"/dev/pts/", then=prompt)
        assert b"31 97\r\n" in data and b"42\r\n" in data
        socket.send_bytes(b"exit 5\n")
        read_until(socket, b"$ ")
        socket.send_bytes(b"echo left-$?; stty size; exit\n")
        data = read_until(socket, b"left-5\r\n31 97\r\n")


# --- what is not given -------------------------------------------------------------------------------

def status(box, command, name):
    return dict(line.split(":\t", 1) for line in output(box, command).splitlines())[name]


def test_root_has_no_power_beyond_the_box(home, needs_root):
    read = "sudo cat /proc/self/status"
    assert status(home, read, "NoNewPrivs") == "1" and status(home, read, "Seccomp") == "2"
    # chown, dac_override, fowner, fsetid, kill, setgid, setuid: nothing for mounts, networks, devices or others
    assert int(status(home, read, "CapEff"), 16) == int(status(home, read, "CapBnd"), 16) == 0xfb
    assert int(status(home, "cat /proc/self/status", "CapEff"), 16) == 0
    for command in ("mount -t tmpfs none /mnt", "mknod /tmp/d b 8 0", "chroot / true", "unshare -m true",
                    "cat /proc/1/environ", "readlink /proc/1/fd/3", "sh -c ': < /proc/1/fd/3'", "cat /proc/1/maps", "sh -c 'echo 1 > /proc/sys/vm/drop_caches'",
                    "prlimit --locks=unlimited true", "hostname other", "sh -c 'ulimit -Hn 1000000'"):
        assert home.run(f"sudo {command}")["exitCode"] != 0, command


def test_limits_of_the_caller_are_the_commands(home):
    assert output(home, "(ulimit -t 7; ulimit -n 99; sudo sh -c 'ulimit -t; ulimit -n')") == "7\n99\n"


def test_other_templates_have_none_of_it(box):
    assert box.run("test -e /run/sudo.sock")["exitCode"] == 1
    assert box.run("sudo id")["exitCode"] != 0
    if IS_ROOT:
        assert int(status(box, "cat /proc/self/status", "CapBnd"), 16) == 0
        said = box.begin("cat /proc/self/status; touch /0 /usr/x /etc/hosts", user="root").wait()
        assert said["exitCode"] != 0 and "CapEff:\t0000000000000000" in said["stdout"]
