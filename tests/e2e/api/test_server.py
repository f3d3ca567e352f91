"""The server's other doors: TLS with a certificate that changes, a Unix socket, drain at the end."""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import warnings

import pytest

from support.daemon import IS_ROOT, Daemon, until
from support.sockets import Socket


def certificate(place, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", str(place / "key.pem"), "-out", str(place / "cert.pem"), "-days", "2",
                    "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1"],
                   check=True, capture_output=True)
    for file in ("key.pem", "cert.pem"):
        if IS_ROOT:
            shutil.chown(place / file, "nobody")  # SIGHUP reads it again, without privilege


def peer_name(port, trusted=None):
    context = ssl.create_default_context(cafile=trusted) if trusted else ssl._create_unverified_context()
    with socket.create_connection(("127.0.0.1", port)) as raw, context.wrap_socket(raw, server_hostname="127.0.0.1") as tls:
        return tls.version(), tls.getpeercert(binary_form=True)


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate")
def test_tls_serves_and_takes_a_new_certificate(tmp_path):
    for parent in [tmp_path, *tmp_path.parents][:4]:
        if parent.stat().st_uid == os.geteuid() and str(parent) not in ("/tmp", "/"):
            parent.chmod(0o755)
    certificate(tmp_path, "one.example")
    with Daemon("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")) as daemon:
        def ask(method, path, value=None):
            context = ssl.create_default_context(cafile=tmp_path / "cert.pem")
            connection = http.client.HTTPSConnection("127.0.0.1", daemon.port, context=context, timeout=30)
            connection.request(method, path, body=json.dumps(value) if value is not None else None,
                               headers={"Authorization": f"Bearer {daemon.key}", "Content-Type": "application/json"})
            response = connection.getresponse()
            data = response.read()
            connection.close()
            return response.status, data

        daemon.delete_all = lambda: None  # it speaks plain HTTP
        status, data = ask("POST", "/api/v1/sandboxes", {"template": "bash"})
        assert status == 201
        path = f"/api/v1/sandboxes/{json.loads(data)['id']}"
        status, data = ask("POST", path + "/execute", {"type": "command", "content": "head -c 500000 /dev/zero | tr '\\0' x"})
        assert status == 200 and len(json.loads(data)["stdout"]) == 500000
        version, first = peer_name(daemon.port)
        assert version in ("TLSv1.2", "TLSv1.3")
        with socket.create_connection(("127.0.0.1", daemon.port)) as raw:  # plain words to a TLS port
            raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
            assert b"200" not in raw.recv(1000)
        for worst in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            context = ssl._create_unverified_context()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it is old is the point
                context.maximum_version = worst
            with pytest.raises((ssl.SSLError, OSError)):
                with socket.create_connection(("127.0.0.1", daemon.port)) as raw:
                    context.wrap_socket(raw)
        following = tmp_path / "following"
        following.mkdir()
        certificate(following, "two.example")
        for file in ("key.pem", "cert.pem"):  # other files under the same names, as whoever renews them does it
            os.replace(following / file, tmp_path / file)
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: peer_name(daemon.port)[1] != first, what="the new certificate")
        (tmp_path / "cert.pem").write_text("nonsense")
        second = peer_name(daemon.port)[1]
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: "stays as it was" in daemon.log(), what="the complaint")
        assert peer_name(daemon.port)[1] == second
        (tmp_path / "cert.pem").write_bytes(ssl.DER_cert_to_PEM_cert(second).encode())
        assert ask("DELETE", path)[0] == 204


def test_a_unix_socket_is_a_door_too():
    daemon = Daemon()
    place = daemon.dir / "run"
    place.mkdir()
    if IS_ROOT:
        shutil.chown(place, "nobody")
    daemon.flags = ["--listen", f"unix:{place}/sock"]
    daemon.start(wait=False)
    until(lambda: (place / "sock").exists() or daemon.process.poll() is not None, 60, "the socket")
    assert ((place / "sock").stat().st_mode & 0o777) == 0o600
    raw = socket.socket(socket.AF_UNIX)
    raw.connect(str(place / "sock"))
    raw.sendall(f"GET /api/v1/user HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {daemon.key}\r\nConnection: close\r\n\r\n".encode())
    data = b""
    while piece := raw.recv(4096):
        data += piece
    assert b"200 OK" in data and b'"admin"' in data
    daemon.note_parts()
    daemon.stop()
    assert not daemon.leftovers() and not daemon.complaints()
    daemon.discard()


def is_free(port):
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def test_a_daemon_that_root_starts_can_have_a_port_of_roots(needs_root):
    """It is bound before root is dropped, and free again for the next one, whatever became of the first."""
    port = next(port for port in [443, *range(600, 1024)] if is_free(port))
    with Daemon("--listen", f"127.0.0.1:{port}") as running:
        for restarts in range(2):
            assert running.port == port
            running.api.get("/sandboxes").must(200)
            with open(f"/proc/{running.parts()['daemon']}/status", encoding="utf-8") as status:
                assert "Uid:\t0" not in status.read()
            if restarts == 0:
                running.kill("keeper")
                running.start()


def test_what_is_under_way_ends_in_peace_when_the_server_stops():
    with Daemon() as daemon:
        box = daemon.api.sandbox()
        answers = []
        worker = threading.Thread(target=lambda: answers.append(box.run("sleep 1; echo done")))
        worker.start()
        until(lambda: box.get()["runningExecutions"] == 1)
        with Socket(daemon.api, f"{box.path}/stream") as stream:
            stream.send({"type": "ping"})
            stream.next("pong")
            daemon.note_parts()
            daemon.process.send_signal(signal.SIGTERM)
            assert stream.receive() is None and stream.code == 1001
        until(lambda: refuses(daemon.port), what="the closed door")
        worker.join(30)
        assert answers and answers[0]["stdout"] == "done\n"
        assert daemon.wait_ended() == 0
        daemon.start()
        assert box.get()["status"] == "running"


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return False
    except OSError:
        return True


def test_nothing_reachable_from_the_network_has_privilege(needs_root, daemon):
    pid = daemon.parts()["daemon"]
    fields = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)
    assert "0" not in fields["Uid"].split() and "0" not in fields["Gid"].split()
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0, name
    assert fields["NoNewPrivs"] == "1" and fields["Groups"].strip() in ("", fields["Gid"].split()[0])
