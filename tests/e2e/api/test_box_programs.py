"""What programs of every day find in a box without being told: compilers, an author, leave to install."""
import pathlib
import shutil

import pytest


@pytest.fixture(params=["python", "e2b"])
def any_box(request, api):
    made = api.sandbox(request.param, resources={"memory": "512Mi", "pids": 128})
    yield made
    made.delete().must(204, 404)


def test_a_commit_has_an_author(any_box):
    done = any_box.run("cd $(mktemp -d) && git init -q . && git commit -q --allow-empty -m first && git log --format='%an <%ae>'")
    assert (done["exitCode"], done["stdout"]) == (0, "Sandbox <user@sandbox.invalid>\n"), done


def test_the_systems_python_does_not_refuse_to_install(any_box):
    """It finds nothing here, but not because the environment is somebody else's."""
    done = any_box.run("python3 -m pip install --no-index nothing-of-this-name 2>&1")
    assert "externally-managed" not in done["stdout"] and "No matching distribution" in done["stdout"], done


@pytest.mark.skipif(not pathlib.Path("/usr/local/go/bin/go").exists(), reason="this machine has no Go there")
def test_compilers_in_directories_of_their_own_are_found(any_box):
    for shell in ("command -v go", "bash -lc 'command -v go'"):
        assert any_box.run(shell)["stdout"] == "/usr/local/go/bin/go\n"


@pytest.mark.skipif(not shutil.which("apt-get"), reason="this machine has no apt-get")
@pytest.mark.parametrize("command", ["sudo apt-get install -y jq", "apt update", "sh -c '/usr/bin/apt-get update'"])
def test_what_cannot_install_says_what_can(api, command):
    made = api.sandbox("e2b")
    done = made.run(command)
    made.delete().must(204)
    assert done["exitCode"] == 100 and done["stdout"] == "", done
    assert "this sandbox has no packages of a system" in done["stderr"] and "pip" in done["stderr"], done
