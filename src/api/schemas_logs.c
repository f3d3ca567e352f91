/* Events, the audit log, usage. */
#include "api/schemas_impl.h"

static const struct schema_field event[] = {
	FIELD("seq", INT, .help = "its place in the log; of a stream the id"),
	FIELD("at", TIME),
	FIELD("owner", STRING, .help = "empty: nobody's"),
	FIELD("kind", STRING),
	FIELD("data", OBJECT, .help = "subject and more, by kind"),
};

static const struct schema_field event_page[] = {
	FIELD("items", LIST, .ref = "Event"),
	NEXT,
};

static const struct schema_field audit_line[] = {
	FIELD("seq", INT),
	FIELD("at", TIME),
	FIELD("owner", STRING, .help = "who; empty: not known"),
	FIELD("kind", STRING,
	      .help = "call, denied, open, began, interrupted (by the daemon's end) or cut"),
	FIELD("data", OBJECT,
	      .help = "keyId, method, route, subject, peer, status, code, requestId"),
	FIELD("hash", STRING, .help = "of the line before and this one"),
};

static const struct schema_field audit_head[] = {
	FIELD("seq", INT),
	FIELD("hash", STRING),
	FIELD("isIntact", BOOL, .help = "false: the log's end is not what its head says"),
};

static const struct schema_field usage[] = {
	FIELD("day", STRING, .optional = 1, .help = "in UTC; as far as it was grouped by"),
	FIELD("user", STRING, .optional = 1),
	FIELD("keyId", STRING, .optional = 1, .help = "the key that made the sandbox"),
	FIELD("sandboxId", STRING, .optional = 1,
	      .help = "`kept`: volumes, snapshots and templates of the user"),
	FIELD("executions", INT, .help = "that ended"),
	FIELD("cpuSeconds", NUMBER, .help = "of boxes; see cpuFrom"),
	FIELD("wallSeconds", NUMBER, .help = "that sandboxes ran"),
	FIELD("memoryGiBHours", NUMBER, .help = "limit times time, also while paused"),
	FIELD("diskGiBHours", NUMBER, .help = "limit times time, also while stopped"),
	FIELD("networkBytes", INT, .help = "to and from exposed ports, and to registries"),
};

static const char *const cpu_sources[] = { "boxes", "executions", NULL };

static const struct schema_field usage_page[] = {
	FIELD("items", LIST, .ref = "Usage"),
	NEXT,
	FIELD("cpuFrom", STRING, .choices = cpu_sources,
	      .help = "executions: this machine's boxes are not metered, only what ended counts"),
};

static const struct schema_field audit_page[] = {
	FIELD("items", LIST, .ref = "AuditLine"),
	NEXT,
	FIELD("head", OBJECT, .ref = "AuditHead"),
};

static const struct schema list[] = {
	SCHEMA("Usage", "What was used", usage),
	SCHEMA("UsagePage", "A page of sums", usage_page),
	SCHEMA("Event", "Something that happened", event),
	SCHEMA("EventPage", "A page of a log, oldest first", event_page),
	SCHEMA("AuditLine", "A call that changed something, or a refusal", audit_line),
	SCHEMA("AuditHead", "The end of the audit log", audit_head),
	SCHEMA("AuditPage", "A page of the audit log, oldest first", audit_page),
};

const struct schema_group schemas_logs = { list, ARRAY_LEN(list) };
