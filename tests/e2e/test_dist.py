"""A release: the same bytes each time, whole, and an SBOM that says what is in it."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("HOLT_BUILD", str(ROOT / "build"))
IDENT = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
# Of SPDX 2.3's JSON schema and its clauses 6 to 11, what documents like ours can break.
TEXT, TEXTS = {"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}, "minItems": 1}
REFERENCE = {"type": "string", "pattern": f"^{IDENT.pattern}$"}
SCHEMA = {
    "type": "object",
    "required": ["SPDXID", "creationInfo", "dataLicense", "name", "spdxVersion", "documentNamespace", "packages", "files",
                 "relationships", "documentDescribes"],
    "additionalProperties": False,
    "properties": {
        "spdxVersion": {"const": "SPDX-2.3"}, "dataLicense": {"const": "CC0-1.0"}, "SPDXID": {"const": "SPDXRef-DOCUMENT"},
        "name": TEXT, "documentNamespace": {"type": "string", "pattern": "^https://[^#]+$"},
        "documentDescribes": {"type": "array", "items": REFERENCE, "minItems": 1},
        "creationInfo": {
            "type": "object", "required": ["created", "creators"], "additionalProperties": False,
            "properties": {"created": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"},
                           "creators": {"type": "array", "minItems": 1,
                                        "items": {"type": "string", "pattern": "^(Tool|Person|Organization): .+$"}}}},
        "packages": {"type": "array", "minItems": 2, "items": {
            "type": "object", "required": ["SPDXID", "name", "downloadLocation"], "additionalProperties": False,
            "properties": {
                "SPDXID": REFERENCE, "name": TEXT, "versionInfo": TEXT, "downloadLocation": TEXT, "sourceInfo": TEXT,
                "filesAnalyzed": {"type": "boolean"}, "licenseConcluded": TEXT, "licenseDeclared": TEXT, "copyrightText": TEXT,
                "licenseInfoFromFiles": TEXTS, "hasFiles": {"type": "array", "items": REFERENCE},
                "primaryPackagePurpose": {"enum": ["APPLICATION", "LIBRARY"]},
                "packageVerificationCode": {"type": "object", "required": ["packageVerificationCodeValue"], "properties": {
                    "packageVerificationCodeValue": {"type": "string", "pattern": "^[0-9a-f]{40}$"}}},
                "externalRefs": {"type": "array", "items": {
                    "type": "object", "required": ["referenceCategory", "referenceType", "referenceLocator"],
                    "additionalProperties": False,
                    "properties": {"referenceCategory": {"const": "PACKAGE-MANAGER"}, "referenceType": {"const": "purl"},
                                   "referenceLocator": {"type": "string", "pattern": r"^pkg:deb/[a-z]+/[a-z0-9.+-]+@[^+:/ ]+\?"}}}}}}},
        "files": {"type": "array", "minItems": 4, "items": {
            "type": "object", "required": ["SPDXID", "fileName", "checksums"], "additionalProperties": False,
            "properties": {
                "SPDXID": REFERENCE, "fileName": {"type": "string", "pattern": r"^\./"}, "licenseConcluded": TEXT,
                "copyrightText": TEXT, "licenseInfoInFiles": TEXTS,
                "fileTypes": {"type": "array", "items": {"enum": ["BINARY", "TEXT"]}},
                "checksums": {"type": "array", "minItems": 1, "items": {
                    "type": "object", "required": ["algorithm", "checksumValue"], "additionalProperties": False,
                    "properties": {"algorithm": {"enum": ["SHA1", "SHA256"]},
                                   "checksumValue": {"type": "string", "pattern": "^[0-9a-f]{40}([0-9a-f]{24})?$"}}}}}}},
        "relationships": {"type": "array", "minItems": 2, "items": {
            "type": "object", "required": ["spdxElementId", "relationshipType", "relatedSpdxElement"],
            "additionalProperties": False,
            "properties": {"spdxElementId": REFERENCE, "relatedSpdxElement": REFERENCE, "relationshipType": {
                "enum": ["DESCRIBES", "CONTAINS", "DYNAMIC_LINK", "STATIC_LINK", "DEPENDS_ON", "BUILD_TOOL_OF"]}}}}}}


def make(out, key="", **more):
    """HOLT_TEST_DIST=whole compiles each time, in another directory; else the programs of the build at hand are packed."""
    build = [] if os.environ.get("HOLT_TEST_DIST") == "whole" else ["--build", BUILD]
    subprocess.run([ROOT / "scripts" / "dist", "--out", out, *build], check=True, capture_output=True,
                   env={**os.environ, "SIGN_KEY": str(key), **more})
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    if not (ROOT / ".git").exists():
        pytest.skip("a release is made of a commit, and this is no work tree of git")
    out = tmp_path_factory.mktemp("release")
    return out, make(out)


def find(files, ending, without=" "):
    (name,) = [name for name in files if name.endswith(ending) and without not in name]
    return name


def sbom_of(files):
    return json.loads(files[find(files, ".spdx.json")])


def test_twice_is_the_same(release, tmp_path):
    _, files = release
    # Whoever makes it, and when, leaves no trace.
    again = make(tmp_path / "again", TZ="Asia/Tokyo", LANG="de_DE.UTF-8", USER="somebody", HOME=str(tmp_path))
    assert again.keys() == files.keys() and len(files) == 4
    for name, data in files.items():
        assert again[name] == data, f"{name} differs"


def test_the_source_is_the_commit(release):
    out, files = release
    with tarfile.open(out / find(files, ".tar.gz", "linux")) as tar:
        names = {re.sub("^[^/]+/", "", member.name) for member in tar.getmembers() if member.isfile() or member.issym()}
    tracked = subprocess.run(["git", "ls-tree", "-r", "--name-only", "HEAD"], cwd=ROOT, check=True, capture_output=True,
                             text=True).stdout.split("\n")
    assert names == set(filter(None, tracked))


def test_checksums_hold(release):
    out, files = release
    lines = files["SHA256SUMS"].decode().splitlines()
    assert len(lines) == 3
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest


def unpack(release, place):
    out, files = release
    with tarfile.open(out / find(files, f"linux-{os.uname().machine}.tar.gz")) as tar:
        for member in tar.getmembers():
            assert (member.uid, member.gid, member.mode & 0o7022) == (0, 0, 0), member.name
        tar.extractall(place)


def test_the_programs_run_from_where_they_are_unpacked(release, tmp_path):
    unpack(release, tmp_path)
    holt = tmp_path / "usr/local/bin/holt"
    said = subprocess.run([holt, "version"], check=True, capture_output=True, text=True).stdout
    assert sbom_of(release[1])["packages"][0]["versionInfo"] in said
    for name in ("holt-launch", "holt-init", "holt-warm.so"):
        assert (tmp_path / "usr/local/libexec/holt" / name).exists()


def test_the_sbom_is_spdx(release):
    jsonschema = pytest.importorskip("jsonschema")
    document = sbom_of(release[1])
    jsonschema.Draft7Validator(SCHEMA).validate(document)
    idents = [row["SPDXID"] for row in (document, *document["packages"], *document["files"])]
    assert len(set(idents)) == len(idents)
    for row in document["relationships"]:
        assert {row["spdxElementId"], row["relatedSpdxElement"]} <= set(idents), row
    assert set(document["documentDescribes"]) <= set(idents)


def test_the_sbom_names_every_file_by_what_it_holds(release, tmp_path):
    unpack(release, tmp_path)
    document = sbom_of(release[1])
    there = {f"./{path.relative_to(tmp_path)}": path for path in tmp_path.rglob("*") if path.is_file()}
    assert {row["fileName"] for row in document["files"]} == set(there)
    ones = []
    for row in document["files"]:
        sums = {c["algorithm"]: c["checksumValue"] for c in row["checksums"]}
        data = there[row["fileName"]].read_bytes()
        assert sums == {"SHA1": hashlib.sha1(data).hexdigest(), "SHA256": hashlib.sha256(data).hexdigest()}
        ones.append(sums["SHA1"])
    code = document["packages"][0]["packageVerificationCode"]["packageVerificationCodeValue"]
    assert code == hashlib.sha1("".join(sorted(ones)).encode()).hexdigest()


@pytest.mark.skipif(not shutil.which("dpkg-query"), reason="versions come from dpkg here")
def test_the_sbom_names_what_the_loader_loads(release, tmp_path):
    unpack(release, tmp_path)
    document = sbom_of(release[1])
    versions = {row["name"]: row.get("versionInfo") for row in document["packages"]}
    loaded = subprocess.run(["ldd", tmp_path / "usr/local/bin/holt"], check=True, capture_output=True, text=True).stdout
    paths = re.findall(r"=> (/\S+)", loaded)
    assert len(paths) > 8
    for path in paths:
        owner = ""
        for name in (os.path.realpath(path), re.sub("^/usr", "", os.path.realpath(path))):
            owner = owner or subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False).stdout
        package = owner.split(":")[0]
        version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}\n", package], check=True, capture_output=True,
                                 text=True).stdout.split("\n")[0]
        assert versions.get(package) == version, path
    assert any(row["relationshipType"] == "STATIC_LINK" and "musl" in row["relatedSpdxElement"]
               for row in document["relationships"])


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen")
def test_a_key_signs_the_checksums(release, tmp_path):
    key, out = tmp_path / "key", tmp_path / "out"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
    files = make(out, key)
    assert {name: data for name, data in files.items() if name != "SHA256SUMS.sig"} == release[1]
    (tmp_path / "signers").write_text(f"releases {key.with_suffix('.pub').read_text()}")
    check = ["ssh-keygen", "-q", "-Y", "verify", "-f", tmp_path / "signers", "-I", "releases", "-n", "file", "-s",
             out / "SHA256SUMS.sig"]
    assert subprocess.run(check, input=files["SHA256SUMS"], capture_output=True, check=False).returncode == 0
    assert subprocess.run(check, input=files["SHA256SUMS"] + b"x", capture_output=True, check=False).returncode != 0


# --- what a reader has to know before --------------------------------------------------------------

def section(text, title):
    level, rest = re.search(rf"^(#+) {re.escape(title)}\n(.*)", text, re.MULTILINE | re.DOTALL).groups()
    return re.split(rf"^#{{1,{len(level)}}} ", rest, flags=re.MULTILINE)[0]


def test_the_readme_says_whom_a_shared_kernel_is_for():
    readme = (ROOT / "README.md").read_text()
    said = section(readme, "Whom a shared kernel is for")
    assert "Right for" in said and "Not enough, alone, for" in said and "virtual machine" in said
    assert "(#whom-a-shared-kernel-is-for)" in readme.split("## ")[0]  # before anybody has installed anything
    assert "virtual machine" in section((ROOT / "docs" / "security.md").read_text(), "Not promised")


def test_security_md_says_where_when_and_what():
    text = (ROOT / "SECURITY.md").read_text()
    assert "advisory" in section(text, "Contact")
    assert re.findall(r"^\| (\d+) ", section(text, "What happens then"), re.MULTILINE) == ["3", "10", "30", "90"]
    assert "newest release" in section(text, "Supported versions")
    assert "SHA256SUMS" in section(text, "Checking a release")
