/* Errors, ports, health. */
#include "api/problem.h"
#include "api/schemas_impl.h"

static const char *const health[] = { "ok", "unavailable", NULL };

static const struct schema_field alive[] = {
	FIELD("status", STRING, .choices = health),
	FIELD("service", STRING),
	FIELD("version", STRING),
};

static const struct schema_field ready[] = {
	FIELD("status", STRING, .choices = health),
	FIELD("version", STRING, .optional = 1),
	FIELD("checks", MAP, .help = "ok, or what is wrong with each part"),
};

#define PORT_FIELDS                                                                  \
	FIELD("port", INT), FIELD("public", BOOL, .help = "anybody may reach it"),   \
		FIELD("wake", BOOL, .help = "a request resumes the paused sandbox"), \
		FIELD("url", STRING, .help = "where it is reached"), FIELD("createdAt", TIME)

static const struct schema_field port[] = { PORT_FIELDS };

static const struct schema_field exposed_port[] = {
	PORT_FIELDS,
	FIELD("token", STRING, .help = "for X-Holt-Port-Token; shown only here"),
};

static const struct schema_field port_list[] = {
	FIELD("items", LIST, .ref = "Port"),
	FIELD("listening", LIST | NIL, .ref = "Listener",
	      .help = "null: the sandbox cannot be asked, because it is paused or stopped"),
	FIELD("truncated", BOOL, .help = "more listen than are told"),
};

static const struct schema_field listener[] = {
	FIELD("port", INT),
	FIELD("address", STRING, .help = "that it listens on: 127.0.0.1, 0.0.0.0, ::1, :: ..."),
	FIELD("pid", INT | NIL, .help = "in the sandbox; null: not to be seen"),
	FIELD("command", STRING | NIL),
	FIELD("exposed", BOOL),
};

static const struct schema_field problem[] = {
	FIELD("code", STRING, .choices = problem_codes),
	FIELD("message", STRING, .help = "for people"),
	FIELD("details", OBJECT | NIL,
	      .help = "field: which one is to blame, by its path; or quota, limit and used"),
};

static const struct schema_field error[] = {
	FIELD("error", OBJECT, .ref = "Problem"),
};

static const struct schema list[] = {
	SCHEMA("Error", "What every error answers, whatever its status", error),
	SCHEMA("Problem", "What went wrong", problem),
	SCHEMA("Port", "A port that is exposed", port),
	SCHEMA("ExposedPort", "A port that was just exposed", exposed_port),
	SCHEMA("PortList", "The exposed ports by number, and those that listen", port_list),
	SCHEMA("Listener", "A TCP port that a program in the sandbox listens on", listener),
	SCHEMA("Health", "The process answers", alive),
	SCHEMA("Ready", "Whether there is work to be had", ready),
};

const struct schema_group schemas_daemon = { list, ARRAY_LEN(list) };
