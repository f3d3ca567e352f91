"""The protocol's own conformance suite, both revisions, both sides: each scenario that is scored passes, and so do the
others that it runs but for those named here, with no check left out."""
import pytest

from support import mcp
from support.daemon import BUILD

REVISIONS = (mcp.LEGACY, mcp.MODERN)

# Never scored. The first is empty in this version of the suite; the others are extensions of authorization that this
# client does not speak.
UNSPOKEN = {"tasks-status-notifications", "auth/enterprise-managed-authorization", "auth/dpop", "auth/dpop-nonce"}
SKILLS = ["sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"]


def scenarios(side):
    if not mcp.has_clients():
        return [pytest.param("", "", marks=pytest.mark.skip("the suite is not installed"))]
    return [(revision, name) for revision in REVISIONS for name in mcp.scenarios(side, revision) if name not in UNSPOKEN]


def all_checks(side, folders, *args):
    """What the suite found, once for each revision."""
    return {revision: mcp.suite(side, revision, folders.mktemp("suite"), *args) for revision in REVISIONS}


def judge(side, checks, folder, revision, name, *args):
    """Some scenarios wait for half a second and no longer: who failed among the others is looked at alone, and again."""
    found = checks[revision][name]
    for turn in range(3):
        if mcp.faults(found):
            found = mcp.suite(side, revision, folder / str(turn), *args, "--scenario", name, "--force")[name]
    assert mcp.faults(found) == []
    assert any(check["status"] == "SUCCESS" for check in found), found


@pytest.fixture(scope="session")
def as_server(fixtures):
    return "--url", fixtures.url


@pytest.fixture(scope="session")
def as_client(clients):
    return "--command", str(BUILD / "tests/mcp/client/mcp-conformance-client"), "--timeout", "60000"


@pytest.fixture(scope="session")
def server_checks(as_server, tmp_path_factory):
    return all_checks("server", tmp_path_factory, *as_server)


@pytest.fixture(scope="session")
def client_checks(as_client, tmp_path_factory):
    return all_checks("client", tmp_path_factory, *as_client)


@pytest.mark.parametrize("revision,name", scenarios("server"))
def test_a_scenario_of_servers_passes(as_server, server_checks, tmp_path, revision, name):
    judge("server", server_checks, tmp_path, revision, name, *as_server)


@pytest.mark.parametrize("name", SKILLS)
def test_a_scenario_of_skills_passes(as_server, tmp_path, name):
    found = mcp.suite("server", mcp.MODERN, tmp_path, *as_server, "--scenario", name, "--force")
    assert mcp.faults(found[name]) == []


@pytest.mark.parametrize("revision,name", scenarios("client"))
def test_a_scenario_of_clients_passes(as_client, client_checks, tmp_path, revision, name):
    judge("client", client_checks, tmp_path, revision, name, *as_client)
