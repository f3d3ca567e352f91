/* Keys and users. */
#include "api/schemas_impl.h"

static const char *const roles[] = { "viewer", "user", "admin", NULL };

static const struct schema_field key[] = {
	FIELD("id", STRING),
	FIELD("name", STRING),
	FIELD("role", STRING, .choices = roles),
	FIELD("owner", STRING),
	FIELD("scopes", STRINGS),
	FIELD("sandboxId", STRING | NIL, .help = "a token: good for this sandbox alone"),
	FIELD("createdAt", TIME),
	FIELD("expiresAt", TIME | NIL),
	FIELD("lastUsedAt", TIME | NIL),
	FIELD("key", STRING, .optional = 1, .help = "only in the answer that makes it"),
};

static const struct schema_field key_list[] = {
	FIELD("items", LIST, .ref = "Key"),
	NEXT,
};

static const struct schema_field user[] = {
	FIELD("owner", STRING),
	FIELD("role", STRING, .choices = roles),
	FIELD("keyId", STRING, .help = "empty: a token of an identity provider"),
	FIELD("sandboxId", STRING | NIL),
	FIELD("scopes", STRINGS),
	FIELD("quota", OBJECT, .ref = "Quota"),
	FIELD("use", OBJECT, .ref = "Use"),
	FIELD("rateLimits", OBJECT, .ref = "Rates"),
};

static const char *const user_states[] = { "active", "disabled", NULL };

static const struct schema_field quota[] = {
	FIELD("sandboxes", INT | NIL, .help = "live ones, stopped ones included"),
	FIELD("cpu", NUMBER | NIL, .help = "cores, of those that are not paused"),
	FIELD("memory", INT | NIL, .help = "bytes"),
	FIELD("disk", INT | NIL, .help = "bytes"),
	FIELD("executions", INT | NIL, .help = "a day, UTC"),
	FIELD("pids", INT | NIL, .help = "processes and threads"),
};

static const struct schema_field use[] = {
	FIELD("sandboxes", INT), FIELD("cpu", NUMBER),     FIELD("memory", INT),
	FIELD("disk", INT),      FIELD("executions", INT), FIELD("pids", INT),
};

static const struct schema_field rates[] = {
	FIELD("read", STRING | NIL, .help = "such as 600/m"),
	FIELD("write", STRING | NIL),
	FIELD("exec", STRING | NIL),
	FIELD("create", STRING | NIL),
};

static const struct schema_field user_record[] = {
	FIELD("name", STRING),
	FIELD("role", STRING, .choices = roles, .help = "none of their keys reaches above"),
	FIELD("status", STRING, .choices = user_states),
	FIELD("quota", OBJECT, .ref = "Quota"),
	FIELD("use", OBJECT, .ref = "Use"),
	FIELD("rateLimits", OBJECT, .ref = "Rates"),
	FIELD("createdAt", TIME),
	FIELD("updatedAt", TIME),
};

static const struct schema_field user_list[] = {
	FIELD("items", LIST, .ref = "UserRecord"),
	NEXT,
};

static const struct schema list[] = {
	SCHEMA("Key", "An API key, without the key", key),
	SCHEMA("KeyList", "A page of keys, newest first", key_list),
	SCHEMA("User", "Who is asking", user),
	SCHEMA("UserRecord", "A user", user_record),
	SCHEMA("UserList", "A page of users, newest first", user_list),
	SCHEMA("Quota", "What a user may have at a time; null: no limit", quota),
	SCHEMA("Use", "What a user has", use),
	SCHEMA("Rates", "How fast each key may ask; null: no limit", rates),
};

const struct schema_group schemas_people = { list, ARRAY_LEN(list) };
