#include "api/schemas_impl.h"

const struct schema_field schema_event[] = {
	FIELD("seq", INT, .help = "its place in the log; of a stream the id"),
	FIELD("at", TIME),
	FIELD("owner", STRING, .help = "empty: nobody's"),
	FIELD("kind", STRING),
	FIELD("data", OBJECT, .help = "subject and more, by kind"),
};

const struct schema_field schema_event_page[] = {
	FIELD("items", LIST, .ref = "Event"),
	NEXT,
};

const struct schema_field schema_audit_line[] = {
	FIELD("seq", INT),
	FIELD("at", TIME),
	FIELD("owner", STRING, .help = "who; empty: not known"),
	FIELD("kind", STRING, .help = "call, denied or open"),
	FIELD("data", OBJECT,
	      .help = "keyId, method, route, subject, peer, status, code, requestId"),
	FIELD("hash", STRING, .help = "of the line before and this one"),
};

const struct schema_field schema_audit_head[] = {
	FIELD("seq", INT),
	FIELD("hash", STRING),
	FIELD("isIntact", BOOL, .help = "false: the log's end is not what its head says"),
};

const struct schema_field schema_usage[] = {
	FIELD("day", STRING, .optional = 1, .help = "in UTC; as far as it was grouped by"),
	FIELD("user", STRING, .optional = 1),
	FIELD("keyId", STRING, .optional = 1, .help = "the key that made the sandbox"),
	FIELD("sandboxId", STRING, .optional = 1),
	FIELD("executions", INT, .help = "that ended"),
	FIELD("cpuSeconds", NUMBER, .help = "of executions that ended"),
	FIELD("wallSeconds", NUMBER, .help = "that sandboxes ran"),
	FIELD("memoryGiBHours", NUMBER, .help = "limit times time"),
	FIELD("diskGiBHours", NUMBER, .help = "limit times time"),
	FIELD("networkBytes", INT, .help = "not counted yet: 0"),
};

const struct schema_field schema_usage_page[] = {
	FIELD("items", LIST, .ref = "Usage"),
	NEXT,
};

const struct schema_field schema_audit_page[] = {
	FIELD("items", LIST, .ref = "AuditLine"),
	NEXT,
	FIELD("head", OBJECT, .ref = "AuditHead"),
};
