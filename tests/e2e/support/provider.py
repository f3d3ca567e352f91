"""An identity provider of our own: keys, a JWKS over HTTP or in a file, access tokens."""
import base64
import http.server
import json
import threading
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://id.example"
AUDIENCE = "holt"
MAKERS = {"RS256": (lambda: rsa.generate_private_key(65537, 2048), RSAAlgorithm),
          "ES256": (lambda: ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
          "EdDSA": (ed25519.Ed25519PrivateKey.generate, OKPAlgorithm)}


def coordinate(number):
    return base64.urlsafe_b64encode(number.to_bytes(32, "big")).rstrip(b"=").decode()


class Key:
    def __init__(self, alg, kid):
        self.alg, self.kid = alg, kid
        make, self.kind = MAKERS[alg]
        self.private = make()

    def jwk(self):
        value = self.kind.to_jwk(self.private.public_key())
        value = json.loads(value) if isinstance(value, str) else value
        value.pop("key_ops", None)
        if self.alg == "ES256":  # some versions leave zeros at the front out, which RFC 7518 (6.2.1.2) does not allow
            numbers = self.private.public_key().public_numbers()
            value.update(x=coordinate(numbers.x), y=coordinate(numbers.y))
        return {**value, "kid": self.kid, "use": "sig", "alg": self.alg}

    def token(self, owner="anna", head=None, **claims):
        now = int(time.time())
        all_claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": owner, "exp": now + 300, "iat": now, **claims}
        return jwt.encode({k: v for k, v in all_claims.items() if v is not None}, self.private, self.alg,
                          headers={"kid": self.kid, **(head or {})})


class Provider:
    """Serves the JWKS of its keys; `asked` counts how often."""

    def __init__(self, max_age=None):
        self.keys, self.asked, self.max_age, self.status = [], 0, max_age, 200
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked += 1
                body = outer.jwks().encode()
                self.send_response(outer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                if outer.max_age is not None:
                    self.send_header("Cache-Control", f"public, max-age={outer.max_age}")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def jwks(self):
        return json.dumps({"keys": [key.jwk() for key in self.keys]})

    def add(self, alg, kid):
        self.keys.append(Key(alg, kid))
        return self.keys[-1]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
