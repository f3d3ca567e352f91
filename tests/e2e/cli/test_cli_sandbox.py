"""Sandboxes, keys and pools from the command line, and what it says when something is wrong."""
import http.server
import json
import re
import shutil
import subprocess
import threading

import pytest

from support.cli import Cli
from support.daemon import Daemon

ID = re.compile(r"[a-z0-9]{20}")


# --- sandboxes -----------------------------------------------------------------------------------


def test_create_prints_the_id_and_inspect_knows_it(cli):
    ident = cli.must("sandbox", "create", "--template", "bash", "--memory", "64M", "--cpu", "250m",
                     "--pids", "20", "--timeout", "10m", "--idle-timeout", "5m", "--metadata", "team=red",
                     "--env", "TOKEN=1").strip()
    assert ID.fullmatch(ident)
    value = cli.json("sandbox", "inspect", ident, "--json")
    assert value["template"] == "bash" and value["metadata"] == {"team": "red"}
    assert value["resources"]["memory"] == 64 << 20 and value["resources"]["cpu"] == 0.25
    assert value["resources"]["pids"] == 20
    assert value["timeout"] == 600 and value["idleTimeout"] == 300 and value["envNames"] == ["TOKEN"]
    text = cli.must("sandbox", "inspect", ident)
    assert f"id: {ident}\n" in text and "metadata: \n  team: red\n" in text
    assert cli.must("sandbox", "rm", ident) == ident + "\n"


def test_create_can_say_all_of_it(cli):
    value = cli.json("sandbox", "create", "--json", "--cold", "--template", "bash")
    assert value["status"] == "running" and value["start"] == "cold"
    cli.must("sandbox", "rm", value["id"])


def test_get_or_create_finds_the_one_of_that_name(cli):
    first = cli.must("sandbox", "create", "--name", "shared", "--template", "bash")
    assert cli.must("sandbox", "create", "--name", "shared", "--get-or-create") == first
    assert "taken" in cli.fails("sandbox", "create", "--name", "shared")[0]
    assert "--get-or-create wants --name" in cli.fails("sandbox", "create", "--get-or-create")[0]
    cli.must("sandbox", "rm", "shared")


def test_the_list_is_an_aligned_table(cli, box):
    lines = cli.must("sandbox", "ls").splitlines()
    assert lines[0].split() == ["ID", "NAME", "STATUS", "TEMPLATE", "START", "AGE", "EXPIRES"]
    row = next(line for line in lines if line.startswith(box))
    assert row.split()[:4] == [box, "-", "running", "bash"]
    for word in ("NAME", "STATUS", "AGE"):
        assert all(line[lines[0].index(word) - 1] == " " for line in lines)
    assert re.fullmatch(r"5\dm", row.split()[6])


def test_the_list_can_be_ids_or_json_and_can_be_narrowed(cli, box):
    other = cli.must("sandbox", "create", "--metadata", "a=b c&d", "--metadata", "e=f").strip()
    assert set(cli.must("sandbox", "ls", "-q").split()) >= {box, other}
    assert cli.must("sandbox", "ls", "--quiet", "--metadata", "a=b c&d").split() == [other]
    assert cli.must("sandbox", "ls", "--quiet", "--metadata", "a=x").split() == []
    assert cli.must("sandbox", "ls", "--quiet", "--template", "python").split() == [other]
    assert {item["id"] for item in cli.json("sandbox", "ls", "--json")} >= {box, other}
    cli.must("sandbox", "rm", other)
    assert other not in cli.must("sandbox", "ls", "-q")
    assert other in cli.must("sandbox", "ls", "-q", "--all")
    assert other in cli.must("sandbox", "ls", "-q", "--status", "stopped,failed")


def test_remove_goes_on_after_a_failure(cli):
    ids = [cli.must("sandbox", "create", "--template", "bash").strip() for _ in range(2)]
    done = cli.run("sandbox", "rm", ids[0], "nosuch", ids[1])
    assert done.returncode == 125
    assert done.stdout.decode().split() == ids
    assert done.stderr == b"holt: nosuch: there is no sandbox 'nosuch'\n"


def test_pause_and_resume(cli, box):
    assert cli.must("sandbox", "pause", box) == box + "\n"
    row = next(line for line in cli.must("sandbox", "ls").splitlines() if line.startswith(box))
    assert " paused " in row and row.endswith("m left")
    assert "paused" in cli.fails("exec", box, "--", "true")[0]
    assert [one["status"] for one in cli.json("sandbox", "resume", box, "--json")] == ["running"]
    assert cli.must("exec", box, "--", "echo", "on") == "on\n"


def test_removing_all_wants_to_be_meant():
    with Daemon() as own:
        cli = Cli(own)
        ids = {cli.must("sandbox", "create", "--template", "bash").strip() for _ in range(3)}
        assert "say --yes too" in cli.fails("sandbox", "rm", "--all")[0]
        assert "exclude each other" in cli.fails("sandbox", "rm", "--all", "--yes", "x")[0]
        assert "wants ID..." in cli.fails("sandbox", "rm")[0]
        assert set(cli.must("sandbox", "ls", "-q").split()) == ids
        assert set(cli.must("sandbox", "rm", "--all", "--yes").split()) == ids
        assert cli.must("sandbox", "ls", "-q") == ""


# --- keys and pools ------------------------------------------------------------------------------


def test_a_key_works_until_it_is_revoked(cli):
    value = cli.json("key", "create", "--name", "ci", "--role", "viewer", "--expires", "1h", "--json")
    viewer = cli.with_env(HOLT_API_KEY_FILE=None, HOLT_API_KEY=value["key"])
    viewer.must("sandbox", "ls")
    assert viewer.fails("sandbox", "create")[0].startswith("holt: ")
    row = next(line for line in cli.must("key", "ls").splitlines() if line.startswith(value["id"]))
    assert row.split()[1:4] == ["ci", "viewer", "admin"] and row.split()[5] in ("59m", "1h", "60m")
    assert cli.must("key", "revoke", value["id"]) == value["id"] + "\n"
    assert viewer.fails("sandbox", "ls")[1].startswith("hint: ")


def test_the_key_alone_is_printed(cli):
    key = cli.must("key", "create", "--name", "plain", "--role", "viewer")
    assert re.fullmatch(r"holt_[0-9a-f]{40}\n", key)
    ident = next(k["id"] for k in cli.json("key", "ls", "--json") if k["name"] == "plain")
    cli.must("key", "revoke", ident)
    assert "--name is missing" in cli.fails("key", "create")[0]


def test_text_of_others_cannot_reach_the_terminal(cli):
    made = cli.daemon.api.post("/keys", {"name": "a\x1b[2Jb\u202ec", "role": "viewer"}).must(201).json
    text = cli.must("key", "ls")
    assert "\\x1b[2Jb\\xe2\\x80\\xaec" in text and "\x1b" not in text and "\u202e" not in text
    cli.must("key", "revoke", made["id"])


def test_the_pool_is_shown(cli):
    lines = cli.must("pool").splitlines()
    assert lines[0].split() == ["TEMPLATE", "READY", "BUILDING", "CLAIMED", "TARGET", "HITS", "MISSES", "EMPTY", "LIMITS", "GIVEN", "UP", "PROBLEM"]
    assert {line.split()[0] for line in lines[1:]} >= {"python", "bash"}
    assert {row["template"] for row in cli.json("pool", "--json")} >= {"python", "bash"}


# --- what is wrong -------------------------------------------------------------------------------


def test_no_daemon_says_how_to_start_one(cli):
    away = cli.with_env(HOLT_URL="http://127.0.0.1:1")
    assert away.fails("sandbox", "ls") == [
        "holt: no daemon at http://127.0.0.1:1: start one with 'holt serve'"]
    assert away.fails("exec", "x", "--", "true")[0].startswith("holt: no daemon at ")
    assert away.fails("shell", "x")[0].startswith("holt: no daemon at ")
    away = cli.with_env(HOLT_URL="unix:/nonexistent/holt.sock")
    assert away.fails("pool")[0].startswith("holt: no daemon at unix:/nonexistent/holt.sock")


def test_a_missing_key_says_how_to_give_it(cli, tmp_path):
    none = cli.with_env(HOLT_API_KEY_FILE=None, XDG_CONFIG_HOME=str(tmp_path), HOME=str(tmp_path))
    lines = none.fails("sandbox", "ls")
    assert lines[0] == f"holt: the daemon at http://127.0.0.1:{cli.daemon.port} wants an API key"
    assert "HOLT_API_KEY" in lines[1] and "--api-key-file" in lines[1]
    assert none.must("sandbox", "ls", "-q", "--api-key-file", cli.daemon.key_file) is not None


def test_a_wrong_key_says_which_it_was(cli):
    wrong = cli.with_env(HOLT_API_KEY_FILE=None, HOLT_API_KEY="holt_" + 40 * "0")
    lines = wrong.fails("sandbox", "ls")
    assert "HOLT_API_KEY" in lines[1]


def test_the_key_cannot_be_an_argument(cli):
    assert "unknown option '--api-key'" in cli.fails("sandbox", "ls", "--api-key", "x")[0]


def test_a_failure_is_json_as_well(cli):
    done = cli.run("sandbox", "inspect", "nosuch", "--json")
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 125 and error["code"] == "ENOENT"
    assert done.stderr.decode() == f"holt: {error['message']}\n"


@pytest.mark.parametrize("url, words", [
    ("ftp://127.0.0.1/", "wants http://"), ("127.0.0.1:80", "wants http://"),
    ("http://u:p@127.0.0.1/", "api_key"), ("unix:holt.sock", "absolute path")])
def test_a_bad_address_says_what_is_wanted(cli, url, words):
    assert words in cli.with_env(HOLT_URL=url).fails("sandbox", "ls")[0]


def test_something_else_that_speaks_http_is_recognised(cli, tmp_path):
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"hi")

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        other = cli.with_env(HOLT_URL=f"http://127.0.0.1:{server.server_port}")
        assert "does not speak Holt's API" in other.fails("sandbox", "ls")[0]
        server.shutdown()


@pytest.mark.parametrize("args, words", [
    (["sandbox", "inspect"], "wants ID"),
    (["sandbox", "inspect", "a", "b"], "one operand too many"),
    (["sandbox", "inspect", ""], "an operand is empty"),
    (["kill", "a"], "wants ID EXECUTION"),
    (["sandbox", "creat"], "unknown command 'sandbox creat'"),
    (["sandbox", "ls", "--metadata", "novalue"], "wants NAME=value"),
    (["sandbox", "create", "--metadata", "=x"], "wants NAME=value"),
    (["sandbox", "create", "--memory", "1"], "--memory is out of range"),
])
def test_bad_input_is_named(cli, args, words):
    assert words in cli.fails(*args)[0]


# --- other roads ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("no openssl to make a certificate with")
    where = tmp_path_factory.mktemp("tls")
    where.chmod(0o755)
    where.parent.chmod(0o755)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-days", "2", "-subj", "/CN=holt", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", where / "key.pem", "-out",
                    where / "cert.pem"], check=True, capture_output=True)
    return where


def test_tls_is_verified_and_everything_works_over_it(certificate):
    with Daemon("--tls-cert", str(certificate / "cert.pem"), "--tls-key", str(certificate / "key.pem")) as own:
        own.api = None  # it speaks plain HTTP
        url = f"https://127.0.0.1:{own.port}"
        strangers = Cli(own, HOLT_URL=url)
        lines = strangers.fails("sandbox", "ls")
        assert "certificate" in lines[0] and "SSL_CERT_FILE" in lines[1]
        assert "certificate" in strangers.fails("shell", "x")[0]
        cli = Cli(own, HOLT_URL=url, SSL_CERT_FILE=str(certificate / "cert.pem"))
        box = cli.must("sandbox", "create", "--template", "bash").strip()
        assert cli.must("exec", box, "--", "cat", input=b"x" * 300000) == "x" * 300000
        with cli.terminal("exec", "-t", box, "--", "sh", "-c", "read x; echo got $x; seq 20000; exit 3") as t:
            t.type(b"typed\r")
            t.wait_for(rb"got typed\r\n")
            t.wait_for(rb"\n20000\r\n")
            assert t.wait() == 3
        cli.must("sandbox", "rm", box)
        own.delete_all = own.note_used = lambda: None


# --- completion ----------------------------------------------------------------------------------


@pytest.mark.parametrize("line, expected", [
    ("holt sa", "sandbox"), ("holt sandbox cr", "create"), ("holt sandbox create --ge", "--get-or-create"),
    ("holt sandbox ", "create ls inspect rm pause resume stop start extend"), ("holt key re", "revoke"),
    ("holt kill a b --sig", "--signal"), ("holt config sh", "show"), ("holt shell --att", "--attach")])
def test_bash_completes_word_by_word(cli, line, expected):
    script = cli.must("help", "--completion", "bash")
    words = line.split(" ")
    ask = f'\nCOMP_WORDS=({" ".join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; _holt\n' \
          'echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script + ask], capture_output=True, check=True)
    assert done.stdout.decode().strip() == expected


@pytest.mark.parametrize("line, expected", [
    ("holt sandbox cr", ["create"]), ("holt sandbox create --ge", ["--get-or-create"]),
    ("holt sa", ["sandbox"]), ("holt exec --backg", ["--background"])])
def test_fish_completes_word_by_word(cli, tmp_path, line, expected):
    if not shutil.which("fish"):
        pytest.skip("fish is not there")
    (tmp_path / "holt.fish").write_text(cli.must("help", "--completion", "fish"))
    done = subprocess.run(["fish", "--no-config", "-c", f"source {tmp_path}/holt.fish; complete -C '{line}'"],
                          capture_output=True, check=True, env={**cli.env, "HOME": str(tmp_path)})
    assert [row.split("\t")[0] for row in done.stdout.decode().splitlines()] == expected


def test_the_first_word_of_a_group_lists_it(cli):
    assert "  sandbox create " in cli.must("sandbox", "--help")
    assert cli.must("help", "sandbox") == cli.must("sandbox", "--help")
    assert "unknown command 'nosuch'" in cli.fails("help", "nosuch")[0]
    done = cli.run("key")
    assert done.returncode == 125 and b"  key revoke " in done.stderr


def test_a_sandbox_lives_longer_and_ends_as_it_was_told_to(cli):
    made = cli.json("sandbox", "create", "--template", "bash", "--timeout", "10m", "--on-timeout", "stop", "--auto-resume", "--json")
    assert made["onTimeout"] == "stop" and made["autoResume"] is True
    assert cli.must("sandbox", "extend", "--timeout", "0.5d", made["id"]).strip() == made["id"]
    now = cli.json("sandbox", "inspect", "--json", made["id"])
    assert now["timeout"] == 12 * 3600 and now["expiresAt"] > made["expiresAt"]
    assert "(sandbox_timeout_max)" in cli.fails("sandbox", "extend", "--timeout", "30d", made["id"])[0]
    assert "7d" in cli.fails("sandbox", "extend", "--timeout", "soon", made["id"])[0]
    cli.must("sandbox", "rm", made["id"])


def test_a_refusal_names_the_setting_that_decides(cli, box):
    assert "(exec_timeout_max)" in cli.fails("exec", "--timeout", "2d", box, "--", "true")[0]
    assert "(limits_memory_max)" in cli.fails("sandbox", "create", "--memory", "900G")[0]
    assert "(sandbox_timeout_max)" in cli.fails("sandbox", "create", "--timeout", "30d")[0]
    assert "(sandbox_timeout_max)" in cli.fails("sandbox", "create", "--idle-timeout", "30d")[0]
