"""install_packages: names and files, from a registry, for a sandbox that has no network."""
import pytest

from support.daemon import Daemon
from support.mcp import Modern


@pytest.fixture(scope="module")
def peer(registry):
    with Daemon("--registry-pip", f"{registry.url}/simple/", "--registry-allow-private") as daemon:
        yield Modern(daemon)


@pytest.fixture(scope="module")
def box(peer):
    return peer.tool("sandbox_create", template="base")["structuredContent"]["sandbox_id"]


def said(result):
    return result["content"][0]["text"]


def test_a_package_is_installed_by_its_name(peer, box):
    done = peer.tool("install_packages", sandbox_id=box, manager="pip", packages=["holtdemo==1.2"])
    assert not done["isError"] and done["structuredContent"]["exit_code"] == 0, done
    found = peer.tool("exec", sandbox_id=box, command="python3 -c 'import holtdemo; print(holtdemo.__name__)'")
    assert found["structuredContent"]["stdout"] == "holtdemo\n"


def test_packages_are_installed_by_a_file(peer, registry):
    box = peer.tool("sandbox_create", template="base")["structuredContent"]["sandbox_id"]
    peer.tool("write_file", sandbox_id=box, path="app/requirements.txt", content="holtdemo==1.2\n")
    done = peer.tool("install_packages", sandbox_id=box, manager="pip", file="app/requirements.txt")
    assert done["structuredContent"]["exit_code"] == 0, done
    found = peer.tool("exec", sandbox_id=box, command="python3 -c 'import holtdemo'")
    assert found["structuredContent"]["exit_code"] == 0, found


def test_what_cannot_be_installed_says_why(peer, box):
    assert "registry_npm" in said(peer.tool("install_packages", sandbox_id=box, manager="npm", packages=["left-pad"]))
    assert "no name" in said(peer.tool("install_packages", sandbox_id=box, manager="pip", packages=["-r/etc/passwd"]))
    for more in ({}, {"packages": ["a"], "file": "b"}):
        assert "packages, or a file" in said(peer.tool("install_packages", sandbox_id=box, manager="pip", **more))
    failed = peer.tool("install_packages", sandbox_id=box, manager="pip", packages=["no-such-thing"])
    assert failed["structuredContent"]["exit_code"] != 0
