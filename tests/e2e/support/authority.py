"""An MCP server that wants OAuth, and its authorization server: on one port, or on two. All that they are asked is
noted, and everything that they say can be changed."""
import base64
import hashlib
import http.server
import json
import secrets
import threading
import urllib.parse

TOOL = {"name": "echo", "description": "says it again", "inputSchema": {"type": "object"}}


def quiet(outer, name):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            outer.serve(name, self, b"")

        def do_DELETE(self):
            outer.serve(name, self, b"")

        def do_POST(self):
            outer.serve(name, self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def log_message(self, *_):
            pass

    return Handler


class Authority:
    def __init__(self, apart=False, mint=None):
        """mint: makes an access token of what was asked for it, where another server than ours will look at it."""
        self.lock = threading.Lock()
        self.asked = []  # (name, method, path, headers, body)
        self.tokens, self.codes, self.refreshes = set(), {}, set()
        self.metadata, self.resource, self.expires, self.mint = {}, {}, 3600, mint
        self.servers = [self.open("mcp")]
        self.mcp_url = self.address(self.servers[0]) + "/mcp"
        if apart:
            self.servers.append(self.open("as"))
        self.issuer = self.address(self.servers[-1])

    def open(self, name):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), quiet(self, name))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    @staticmethod
    def address(server):
        return f"http://127.0.0.1:{server.server_port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def requests(self, path):
        with self.lock:
            return [row for row in self.asked if row[2].split("?")[0] == path]

    def forms(self):
        """What the token endpoint was asked, oldest first."""
        return [dict(urllib.parse.parse_qsl(body.decode())) for _, _, _, _, body in self.requests("/token")]

    def secrets(self):
        """All that nobody else may ever see."""
        return self.tokens | self.refreshes | {"s3cr3t-of-a-client"}

    # --- answers -------------------------------------------------------------------------------

    def serve(self, name, h, body):
        path = h.path.split("?")[0]
        with self.lock:
            self.asked.append((name, h.command, h.path, dict(h.headers), body))
        routes = {"/mcp": self.mcp, "/.well-known/oauth-protected-resource/mcp": self.about_resource,
                  "/.well-known/oauth-authorization-server": self.about_server, "/register": self.register,
                  "/authorize": self.authorize, "/token": self.token}
        routes.get(path, lambda h, body: self.say(h, 404, {}))(h, body)

    @staticmethod
    def say(h, status, value=None, **headers):
        data = b"" if value is None else json.dumps(value).encode()
        h.send_response(status)
        h.send_header("Content-Type", "application/json")
        h.send_header("Content-Length", str(len(data)))
        for key, text in headers.items():
            h.send_header(key.replace("_", "-"), text)
        h.end_headers()
        h.wfile.write(data)

    def about_resource(self, h, _):
        self.say(h, 200, {"resource": self.mcp_url, "authorization_servers": [self.issuer], **self.resource})

    def about_server(self, h, _):
        self.say(h, 200, {"issuer": self.issuer, "authorization_endpoint": self.issuer + "/authorize",
                          "token_endpoint": self.issuer + "/token", "registration_endpoint": self.issuer + "/register",
                          "code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"],
                          "authorization_response_iss_parameter_supported": True, **self.metadata})

    def register(self, h, body):
        self.say(h, 201, {"client_id": "c-" + secrets.token_hex(4), "client_secret": "s3cr3t-of-a-client",
                          "redirect_uris": json.loads(body)["redirect_uris"]})

    def authorize(self, h, _):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(h.path).query))
        code = secrets.token_hex(8)
        self.codes[code] = query
        back = urllib.parse.urlencode({"code": code, "state": query.get("state", ""), "iss": self.issuer})
        self.say(h, 302, None, Location=f"{query['redirect_uri']}?{back}")

    def token(self, h, body):
        form = dict(urllib.parse.parse_qsl(body.decode()))
        if (not self.mint and form.get("resource") != self.mcp_url) or not self.is_granted(form):
            return self.say(h, 400, {"error": "invalid_grant", "error_description": json.dumps(form)})
        access = self.mint(form) if self.mint else "at-" + secrets.token_hex(16)
        refresh = "rt-" + secrets.token_hex(16)
        self.tokens.add(access)
        answer = {"access_token": access, "token_type": "Bearer", "expires_in": self.expires}
        if form["grant_type"] in ("authorization_code", "refresh_token"):
            self.refreshes.add(refresh)
            answer["refresh_token"] = refresh
        return self.say(h, 200, answer)

    def is_granted(self, form):
        if form["grant_type"] == "refresh_token":
            known = form["refresh_token"] in self.refreshes
            self.refreshes.discard(form["refresh_token"])  # each is good once
            return known
        if form["grant_type"] == "client_credentials":
            return True
        if form["grant_type"].endswith(":jwt-bearer"):
            return form["assertion"] == "jwt-of-a-workload"
        asked = self.codes.pop(form["code"], None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        return asked and asked["code_challenge"] == proof and asked["redirect_uri"] == form["redirect_uri"]

    def mcp(self, h, body):
        bearer = h.headers.get("Authorization", "").removeprefix("Bearer ")
        if bearer not in self.tokens:
            where = self.mcp_url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
            return self.say(h, 401, {}, WWW_Authenticate=f'Bearer resource_metadata="{where}"')
        if h.command != "POST":
            return self.say(h, 405, {})
        asked = json.loads(body)
        results = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                  "serverInfo": {"name": "tracker", "version": "1"}},
                   "tools/list": {"tools": [TOOL]},
                   "tools/call": {"content": [{"type": "text", "text": "hello"}]}}
        if "id" not in asked:
            return self.say(h, 202)
        if asked["method"] not in results:
            return self.say(h, 400, {"jsonrpc": "2.0", "id": asked["id"],
                                     "error": {"code": -32601, "message": "not known"}})
        return self.say(h, 200, {"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]})
