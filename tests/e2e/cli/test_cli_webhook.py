"""Webhooks from the command line, against a real receiver."""
import pytest

from support.cli import Cli
from support.daemon import Daemon, until
from support.receiver import Receiver


@pytest.fixture(scope="module")
def cli():
    with Daemon("--webhook-allow-private", "--webhook-retry", "20ms") as daemon:
        yield Cli(daemon)


def test_a_webhook_is_made_tested_looked_at_and_removed(cli, tmp_path):
    with Receiver() as receiver:
        ident, secret = cli.must("webhook", "create", "cli-hook", receiver.url, "-e", "key.*").split()
        assert secret.startswith("whsec_") and "delivered in" in cli.must("webhook", "test", ident)
        assert receiver.got[0].kind == "webhook.ping" and receiver.got[0].is_signed_with(secret)
        key = cli.json("key", "create", "--name", "one", "--json")["id"]
        until(lambda: len(receiver.got) == 2, 10, "the event")
        until(lambda: "delivered" in cli.must("webhook", "deliveries", "cli-hook"), 10, "its delivery")
        assert "key.created" in cli.must("webhook", "deliveries", "cli-hook") and key
        assert "active" in cli.must("webhook", "ls") and "delivered: 1" in cli.must("webhook", "show", "cli-hook")
        assert secret not in cli.must("webhook", "show", "cli-hook", "--json")
        again = cli.must("webhook", "set", ident, "--rotate-secret").split()
        assert again[0] == ident and again[1].startswith("whsec_") and again[1] != secret
        cli.must("webhook", "set", ident, "--disable")
        assert cli.json("webhook", "show", ident, "--json")["status"] == "disabled"
        own = tmp_path / "secret"
        own.write_text("of-my-own-making-20\n")
        assert cli.must("webhook", "set", ident, "--enable", "--secret-file", str(own)).split() == [ident]
        cli.must("webhook", "test", ident)
        assert receiver.got[-1].is_signed_with("of-my-own-making-20")
        receiver.status = 500
        assert "answered 500" in cli.fails("webhook", "test", ident)[0]
        assert cli.run("webhook", "test", ident, "--json").returncode != 0
        assert "url" in cli.fails("webhook", "create", "bad", "ftp://example.com/")[0]
        assert "want one" in cli.fails("webhook", "set", ident, "--enable", "--disable")[0]
        cli.must("webhook", "rm", "cli-hook")
        assert "cli-hook" not in cli.must("webhook", "ls")
