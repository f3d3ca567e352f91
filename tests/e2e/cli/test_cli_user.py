"""Users by command."""
import re


def test_a_user_is_made_listed_changed_and_ended(cli):
    made = cli.json("user", "create", "ann", "--sandboxes", "3", "--memory", "1G", "--cpu", "1.5", "--executions", "100", "--pids", "900",
                    "--rate-exec", "600/m", "--json")
    assert made["role"] == "user" and made["quota"]["memory"] == 1 << 30 and made["quota"]["cpu"] == 1.5
    assert made["rateLimits"]["exec"] == "600/m"
    row = next(line for line in cli.must("user", "ls").splitlines() if line.startswith("ann "))
    assert re.search(r"user +active +0/3 ", row) and "0/100" in row and "0/900" in row
    shown = cli.must("user", "inspect", "ann")
    assert re.search(r"name: +ann", shown) and re.search(r"sandboxes: +3", shown)
    assert cli.json("user", "set", "ann", "--disable", "--json")["status"] == "disabled"
    changed = cli.json("user", "set", "ann", "--enable", "--reset-limits", "--disk", "64M", "--json")
    assert changed["status"] == "active" and changed["quota"]["sandboxes"] == 500, "everybody's again"
    assert changed["quota"]["disk"] == 64 << 20
    cli.must("user", "rm", "ann")
    assert "there is no user 'ann'" in cli.fails("user", "inspect", "ann")[0]


def test_without_a_name_one_is_told_who_one_is(cli):
    assert cli.json("user", "inspect", "--json")["role"] == "admin"


def test_what_cannot_be_is_said(cli):
    assert "--disable or --enable" in cli.fails("user", "set", "ann", "--disable", "--enable")[0]
    assert "rateLimits.exec" in cli.fails("user", "create", "bob", "--rate-exec", "often")[0]
    assert "there is no user" in cli.fails("user", "set", "nobody", "--sandboxes", "1")[0]


def test_a_key_of_some_scopes(cli):
    made = cli.json("key", "create", "--name", "narrow", "--scope", "exec", "--scope", "sandbox:read", "--json")
    assert sorted(made["scopes"]) == ["exec", "sandbox:read"]
    cli.must("key", "revoke", made["id"])
