"""Templates and their aliases from the command line."""


def test_a_template_is_made_shown_and_used(cli):
    name = cli.must("template", "create", "tool", "--from", "bash", "--env", "A=1", "--workdir", "/tmp",
                    "--writable", "/opt/data", "--start", "touch /tmp/up; exec sleep 600",
                    "--ready-command", "test -e /tmp/up", "--start-timeout", "20s").strip()
    assert name == "tool:1"
    value = cli.json("template", "show", "--json", "tool")
    assert value["workdir"] == "/tmp" and value["writablePaths"] == ["/opt/data"]
    assert value["start"]["readyCommand"] == "test -e /tmp/up" and value["start"]["timeout"] == 20
    assert "workdir: /tmp" in cli.must("template", "show", "tool")
    box = cli.must("sandbox", "create", "--template", "tool").strip()
    assert cli.must("exec", box, "--", "sh", "-c", "pwd; ls /tmp/up; echo $A") == "/tmp\n/tmp/up\n1\n"
    assert "tool:1" in cli.must("sandbox", "ls")
    cli.must("sandbox", "rm", box)
    cli.must("template", "rm", "tool:1")
    assert cli.run("template", "show", "tool").returncode == 125


def test_an_alias_is_set_moved_listed_and_removed(cli):
    for _ in range(2):
        cli.must("template", "create", "web", "--from", "bash")
    assert cli.must("template", "alias", "web", "prod", "1") == "web:prod\n"
    cli.must("template", "alias", "web", "prod", "2")
    assert "web:2" in cli.must("template", "aliases", "web")
    assert cli.json("template", "aliases", "--json", "web")[0]["template"] == "web:2"
    refused = cli.run("template", "rm", "web:2")
    assert refused.returncode == 125 and b"web:prod" in refused.stderr
    cli.must("template", "unalias", "web", "prod")
    cli.must("template", "rm", "web:1", "web:2")
    assert "web" not in cli.must("template", "aliases", "web")


def test_what_makes_no_sense_is_refused(cli):
    for args in (["create", "x", "--ready-port", "80"], ["create", "x", "--workdir", "here"],
                 ["create", "x", "--start", "y", "--ready-http", "/"], ["alias", "x", "y", "z"],
                 ["alias", "nosuch", "prod", "1"], ["unalias", "nosuch", "prod"]):
        assert cli.run("template", *args).returncode == 125, args


def test_what_is_preloaded_is_shown_and_there(cli):
    cli.must("template", "create", "both", "--from", "base", "--preload", "fractions", "--preload", "json", "--preload-node", "fs")
    shown = cli.must("template", "show", "both")
    assert "preload: " in shown and "fractions" in shown and "preloadNode: " in shown
    value = cli.json("template", "show", "--json", "both")
    assert value["preload"] == ["fractions", "json"] and value["preloadNode"] == ["fs"]
    cli.must("template", "rm", "both:1")
    cli.must("template", "create", "both", "--from", "python", "--preload", "no_such_module")
    refused = cli.run("sandbox", "create", "--template", "both")
    assert refused.returncode == 125 and b"cannot import 'no_such_module'" in refused.stderr
    cli.must("template", "rm", "both:1")
