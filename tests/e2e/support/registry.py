"""Registries of packages on this machine: as little of pip's, npm's, cargo's and go's as their clients ask for."""
import base64
import hashlib
import http.server
import io
import json
import tarfile
import threading
import zipfile


def wheel(name, version, code):
    data = io.BytesIO()
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(data, "w") as z:
        z.writestr(f"{name}.py", code)
        z.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return data.getvalue()


def tarball(name, version, code):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as t:
        package = json.dumps({"name": name, "version": version, "main": "index.js"})
        for path, text in (("package/package.json", package), ("package/index.js", code)):
            member = tarfile.TarInfo(path)
            member.size = len(text)
            t.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


def crate(name, version, code):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as t:
        manifest = f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2018"\n'
        for path, text in (("Cargo.toml", manifest), ("src/main.rs", code)):
            member = tarfile.TarInfo(f"{name}-{version}/{path}")
            member.size = len(text)
            t.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


def module(path, version, code):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as z:
        z.writestr(f"{path}@{version}/go.mod", f"module {path}\n")
        z.writestr(f"{path}@{version}/main.go", code)
    return data.getvalue()


class Registry:
    """Knows one package, `holtdemo` 1.2, and remembers who asked for what."""

    def __init__(self, host="127.0.0.1"):
        """host: a name or address of this machine."""
        self.asked = []
        self.files = {}
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                registry.asked.append((self.path, dict(self.headers)))
                kind, data = registry.files.get(self.path, ("text/plain", None))
                if self.path.startswith("/moved"):
                    self.send_response(302)
                    self.send_header("Location", "http://127.0.0.1:9/elsewhere")
                    data = b""
                else:
                    self.send_response(404 if data is None else 200)
                data = data or b""
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((host, 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://{host}:{self.port}"
        self.fill()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def fill(self):
        data = wheel("holtdemo", "1.2", "VALUE = 42\n")
        name = "holtdemo-1.2-py3-none-any.whl"
        page = f'<a href="{self.url}/files/{name}#sha256={hashlib.sha256(data).hexdigest()}">{name}</a>'
        self.files["/simple/holtdemo/"] = ("text/html", page.encode())
        self.files[f"/files/{name}"] = ("application/zip", data)
        data = tarball("holtdemo", "1.2.0", "module.exports = 42;\n")
        document = {"name": "holtdemo", "dist-tags": {"latest": "1.2.0"}, "versions": {"1.2.0": {
            "name": "holtdemo", "version": "1.2.0", "dist": {
                "tarball": f"{self.url}/holtdemo/-/holtdemo-1.2.0.tgz",
                "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()}}}}
        self.files["/holtdemo"] = ("application/json", json.dumps(document).encode())
        self.files["/holtdemo/-/holtdemo-1.2.0.tgz"] = ("application/octet-stream", data)
        self.fill_cargo()
        self.fill_go()

    def fill_cargo(self):
        """A sparse index: where crates are, and one file for each name."""
        data = crate("holtdemo", "1.2.0", 'fn main() { println!("42"); }\n')
        config = {"dl": self.url + "/crates/{crate}-{version}.crate"}
        line = {"name": "holtdemo", "vers": "1.2.0", "deps": [], "cksum": hashlib.sha256(data).hexdigest(),
                "features": {}, "yanked": False}
        self.files["/index/config.json"] = ("application/json", json.dumps(config).encode())
        self.files["/index/ho/lt/holtdemo"] = ("text/plain", json.dumps(line).encode() + b"\n")
        self.files["/crates/holtdemo-1.2.0.crate"] = ("application/gzip", data)

    def fill_go(self):
        path, version = "holt.example/holtdemo", "v1.2.0"
        data = module(path, version, 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println(42) }\n')
        info = json.dumps({"Version": version, "Time": "2024-01-02T03:04:05Z"})
        for name, text in (("list", f"{version}\n"), (f"{version}.info", info), (f"{version}.mod", f"module {path}\n")):
            self.files[f"/go/{path}/@v/{name}"] = ("text/plain", text.encode())
        self.files[f"/go/{path}/@v/{version}.zip"] = ("application/zip", data)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
