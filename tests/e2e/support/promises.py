"""Who may do what, written down by hand from docs/api.md, docs/e2b.md and docs/mcp.md: the scope that each route, method and tool
wants. It is compared with what the daemon really lets through, so it must never be made from the daemon's own tables."""

PUBLIC = "public"  # without any key
SIGNED = "signed"  # by an address that was signed, and by no key
ANY = "any"  # with any key or token that is good, whatever its scopes

ROLES = {
    "viewer": {"sandbox:read", "file:read", "metrics", "usage"},
    "user": {"sandbox:read", "sandbox:write", "exec", "file:read", "file:write", "key", "metrics", "port", "template", "usage", "webhook",
             "image"},
    "admin": {"sandbox:read", "sandbox:write", "exec", "file:read", "file:write", "key", "metrics", "admin", "port", "template", "usage",
              "audit", "webhook", "image"},
}

BOX = "/api/v1/sandboxes/:id"

# Of Holt's own API. A line: the scope, then method and path, as many as there are.
REST = {
    PUBLIC: """
        GET /healthz; GET /readyz; GET /health; GET /api/v1/openapi.json""",
    ANY: """
        GET /api/v1/user; GET /api/v1/profiles; GET /api/v1/profiles/:name""",
    "metrics": "GET /metrics",
    "sandbox:read": f"""
        GET /api/v1/sandboxes; GET {BOX}; GET {BOX}/status; GET {BOX}/usage; GET {BOX}/executions; GET {BOX}/executions/:eid;
        GET {BOX}/executions/:eid/output; GET {BOX}/executions/:eid/wait; GET {BOX}/contexts; GET {BOX}/contexts/:cid;
        GET {BOX}/sessions; GET {BOX}/sessions/:cid; GET {BOX}/packages;
        GET /api/v1/snapshots; GET /api/v1/snapshots/:sid; GET /api/v1/templates; GET /api/v1/templates/:name;
        GET /api/v1/templates/:name/aliases; GET /api/v1/runtimes; GET /api/v1/runtimes/:name; GET /api/v1/volumes;
        GET /api/v1/volumes/:vid; GET /api/v1/events; GET /api/v1/security-events; GET /api/v1/warmpools;
        GET /api/v1/warmpools/:id; GET /api/v1/warmpools/:id/status; GET /api/sessions; GET /api/sessions/:sid;
        GET /api/sessions/:sid/sandbox; GET /api/v1/tools/servers; GET /api/v1/tools; GET /api/v1/approvals""",
    "sandbox:write": f"""
        POST /api/v1/sandboxes; PATCH {BOX}; DELETE {BOX}; POST {BOX}/pause; POST {BOX}/resume; POST {BOX}/stop; POST {BOX}/start;
        POST {BOX}/snapshots; POST {BOX}/fork; DELETE /api/v1/snapshots/:sid; POST /api/sessions; DELETE /api/sessions/:sid;
        POST /api/sessions/:sid/sandbox""",
    "exec": f"""
        POST {BOX}/execute; POST {BOX}/executions; DELETE {BOX}/executions/:eid; POST {BOX}/executions/:eid/stdin;
        POST {BOX}/executions/:eid/signal; POST {BOX}/executions/:eid/cancel; POST {BOX}/executions/:eid/resize;
        POST {BOX}/contexts; DELETE {BOX}/contexts/:cid; POST {BOX}/contexts/:cid/run; POST {BOX}/contexts/:cid/interrupt;
        POST {BOX}/contexts/:cid/restart; POST {BOX}/sessions; DELETE {BOX}/sessions/:cid; POST {BOX}/sessions/:cid/run;
        POST {BOX}/sessions/:cid/interrupt; GET {BOX}/pty; GET {BOX}/stream; POST {BOX}/packages;
        POST /api/v1/tools/:server/:tool/call; POST /api/v1/approvals/:aid""",
    "file:read": f"""
        GET {BOX}/files; GET {BOX}/files/*path; GET {BOX}/watch; GET {BOX}/archive; POST {BOX}/find; POST {BOX}/grep;
        POST {BOX}/bundle; GET /api/v1/skills; GET /api/v1/skills/:name""",
    "file:write": f"""
        PUT {BOX}/files/*path; POST {BOX}/files/*path; DELETE {BOX}/files/*path; PUT {BOX}/archive; POST {BOX}/replace;
        PUT {BOX}/bundle""",
    "port": f"""
        POST {BOX}/ports; GET {BOX}/ports; GET {BOX}/ports/:port; DELETE {BOX}/ports/:port; GET {BOX}/tcp/:port;
        GET {BOX}/ports/:port/*path; HEAD {BOX}/ports/:port/*path; POST {BOX}/ports/:port/*path; PUT {BOX}/ports/:port/*path;
        PATCH {BOX}/ports/:port/*path; DELETE {BOX}/ports/:port/*path; OPTIONS {BOX}/ports/:port/*path""",
    "template": """
        POST /api/v1/templates; DELETE /api/v1/templates/:name; PUT /api/v1/templates/:name/aliases/:alias;
        DELETE /api/v1/templates/:name/aliases/:alias; POST /api/v1/templates/builds; GET /api/v1/templates/builds;
        GET /api/v1/templates/builds/:bid; GET /api/v1/templates/builds/:bid/events; DELETE /api/v1/templates/builds/:bid;
        DELETE /api/v1/templates/cache; GET /api/v1/templates/files/:hash; PUT /api/v1/templates/files/:hash;
        POST /api/v1/volumes; DELETE /api/v1/volumes/:vid""",
    "key": f"""
        POST /api/v1/keys; GET /api/v1/keys; DELETE /api/v1/keys/:kid; POST /api/v1/user/apikeys; GET /api/v1/user/apikeys;
        DELETE /api/v1/user/apikeys/:kid; POST {BOX}/tokens; GET {BOX}/tokens; DELETE {BOX}/tokens/:kid""",
    "usage": "GET /api/v1/usage",
    "audit": "GET /api/v1/audit",
    "webhook": """
        POST /api/v1/webhooks; GET /api/v1/webhooks; GET /api/v1/webhooks/:wid; PATCH /api/v1/webhooks/:wid;
        DELETE /api/v1/webhooks/:wid; POST /api/v1/webhooks/:wid/test; GET /api/v1/webhooks/:wid/deliveries""",
    "admin": """
        POST /api/v1/users; GET /api/v1/users; GET /api/v1/users/:name; PATCH /api/v1/users/:name; DELETE /api/v1/users/:name;
        POST /api/v1/warmpools; PATCH /api/v1/warmpools/:id; DELETE /api/v1/warmpools/:id; GET /api/v1/pool;
        POST /api/v1/tools/servers/:server/login; POST /api/v1/tools/servers/:server/login/finish;
        DELETE /api/v1/tools/servers/:server/login""",
}

# Of E2B's control plane.
CONTROL = {
    SIGNED: "PUT /templates/files/:hash",
    "sandbox:read": """
        GET /sandboxes; GET /v2/sandboxes; GET /sandboxes/metrics; GET /sandboxes/:id; GET /sandboxes/:id/metrics;
        GET /sandboxes/:id/logs; GET /v2/sandboxes/:id/logs; GET /teams""",
    "sandbox:write": """
        POST /sandboxes; POST /v2/sandboxes; DELETE /sandboxes/:id; POST /sandboxes/:id/connect; POST /v2/sandboxes/:id/connect;
        POST /sandboxes/:id/resume; POST /sandboxes/:id/pause; POST /sandboxes/:id/timeout; POST /sandboxes/:id/refreshes;
        PUT /sandboxes/:id/network; POST /sandboxes/:id/fork""",
    "template": """
        POST /sandboxes/:id/snapshots; GET /snapshots; GET /volumes; POST /volumes; GET /volumes/:vid; DELETE /volumes/:vid;
        GET /templates; GET /v2/templates; POST /templates; POST /templates/:tid; POST /templates/:tid/builds/:bid;
        POST /v2/templates; POST /v3/templates; GET /templates/aliases/:alias; POST /templates/tags; DELETE /templates/tags;
        GET /templates/:tid; PATCH /templates/:tid; PATCH /v2/templates/:tid; DELETE /templates/:tid; GET /templates/:tid/tags;
        GET /templates/:tid/files/:hash; POST /v2/templates/:tid/builds/:bid; GET /templates/:tid/builds/:bid/status;
        GET /templates/:tid/builds/:bid/logs""",
    "key": """
        GET /secrets; POST /secrets; GET /secrets/:sid; POST /secrets/:sid; DELETE /secrets/:sid; GET /api-keys; POST /api-keys""",
}

# What only the token of the sandbox opens, and no key: envd and the code interpreter.
ENVD = {
    PUBLIC: "GET /health",
    "token": """
        POST /process.Process/Start; POST /process.Process/Connect; POST /process.Process/List; POST /process.Process/SendInput;
        POST /process.Process/StreamInput; POST /process.Process/CloseStdin; POST /process.Process/SendSignal;
        POST /process.Process/Update; GET /files; POST /files; POST /files/compose; GET /envs; GET /metrics;
        POST /filesystem.Filesystem/Stat; POST /filesystem.Filesystem/ListDir; POST /filesystem.Filesystem/MakeDir;
        POST /filesystem.Filesystem/Move; POST /filesystem.Filesystem/WatchDir; POST /filesystem.Filesystem/CreateWatcher;
        POST /filesystem.Filesystem/GetWatcherEvents; POST /filesystem.Filesystem/RemoveWatcher;
        POST /filesystem.Filesystem/Remove""",
}
CODE = {
    PUBLIC: "GET /health",
    "token": """
        POST /execute; POST /contexts; GET /contexts; DELETE /contexts/:cid; POST /contexts/:cid/restart""",
}
# What only the volume's token opens.
VOLUME = {
    "token": """
        GET /volumecontent/:vid/path; PATCH /volumecontent/:vid/path; DELETE /volumecontent/:vid/path; GET /volumecontent/:vid/dir;
        POST /volumecontent/:vid/dir; GET /volumecontent/:vid/file; PUT /volumecontent/:vid/file""",
}
# The methods of MCP are asked for by POST; what each wants is below.
MCP = {
    PUBLIC: """
        GET /.well-known/oauth-protected-resource; GET /.well-known/oauth-protected-resource/mcp;
        GET /.well-known/oauth-protected-resource/sandboxes/:id/mcp""",
    ANY: """
        POST /mcp; GET /mcp; DELETE /mcp; POST /sandboxes/:id/mcp; GET /sandboxes/:id/mcp; DELETE /sandboxes/:id/mcp""",
}
METHODS = {
    ANY: {"initialize", "ping", "logging/setLevel", "server/discover", "subscriptions/listen", "tools/list", "tools/call",
          "prompts/list", "prompts/get", "resources/list", "resources/templates/list", "resources/subscribe",
          "resources/unsubscribe", "completion/complete"},  # lists show what the key may see, tools/call goes by the tool
    "exec": {"tasks/update", "tasks/cancel"},
    "sandbox:read": {"tasks/get"},
    "file:read": {"resources/read", "resources/directory/read", "skills/list", "skills/get"},
}
TOOLS = {
    "exec": {"exec", "run_code", "process_start", "process_output", "process_input", "process_kill", "process_list",
             "install_packages"},
    "file:read": {"read_file", "list_dir", "search_files", "download_url", "get_skill"},
    "file:write": {"write_file", "upload_url", "install_skill"},
    "file:read file:write": {"edit_file"},
    "sandbox:read": {"sandbox_list"},
    "sandbox:write": {"sandbox_create", "sandbox_kill", "sandbox_fork", "sandbox_snapshot"},
}

# What a token of one sandbox carries: who lacks one of these is given none.
SANDBOX_TOKEN = {"sandbox:read", "exec", "file:read", "file:write", "port"}
SESSION_TOKEN = {"sandbox:read", "exec", "file:read", "file:write"}
VOLUME_TOKEN = {"file:read", "file:write"}


def routes(table):
    """(method, path) -> scope"""
    found = {}
    for scope, text in table.items():
        for line in text.split(";"):
            method, path = line.split()
            assert (method, path) not in found, f"{method} {path} is promised twice"
            found[method, path] = scope
    return found
