/* What sandboxes are made of. */
#include "api/schemas_impl.h"

static const struct schema_field profile_setting[] = {
	FIELD("name", STRING),
	FIELD("value", STRING),
	FIELD("about", STRING),
	FIELD("choices", STRINGS, .help = "that a request may make instead"),
};

static const struct schema_field profile[] = {
	FIELD("name", STRING),
	FIELD("about", STRING),
	FIELD("isAvailable", BOOL),
	FIELD("reason", STRING | NIL, .help = "why it cannot be had on this machine"),
	FIELD("settings", LIST, .ref = "ProfileSetting"),
	FIELD("mayLoosen", STRINGS, .help = "what may be weaker than standard: nothing"),
};

static const struct schema_field profile_list[] = {
	FIELD("items", LIST, .ref = "Profile"),
};

static const struct schema_field missed[] = {
	FIELD("empty", INT, .help = "no box waited"),
	FIELD("limits", INT, .help = "those that waited cannot be given the limits asked for"),
	FIELD("failed", INT, .help = "one could, and the kernel refused: see the log"),
	FIELD("ownFiles", INT,
	      .help = "sandboxes with files of a snapshot or volumes, which no box waits with; "
		      "not counted as misses"),
};

/* How building them goes. */
#define BUILDS(...)                                                                            \
	FIELD("missed", OBJECT, .ref = "PoolMissed", __VA_ARGS__),                             \
		FIELD("givenUp", INT, .help = "boxes that were not built in time, so far",     \
		      __VA_ARGS__),                                                            \
		FIELD("stuck", INT,                                                            \
		      .help = "processes of such boxes that have not ended: the kernel holds " \
			      "them",                                                          \
		      __VA_ARGS__),                                                            \
		FIELD("problem", STRING | NIL,                                                 \
		      .help = "why no box can be built, or what is preloaded is not there; "   \
			      "null: all is well",                                             \
		      __VA_ARGS__)

static const struct schema_field pool[] = {
	FIELD("template", STRING), FIELD("ready", INT),   FIELD("building", INT),
	FIELD("claimed", INT),     FIELD("target", INT),  FIELD("hits", INT),
	FIELD("misses", INT),      BUILDS(.optional = 0),
};

static const struct schema_field pool_list[] = {
	FIELD("items", LIST, .ref = "Pool"),
};

static const struct schema_field scaling[] = {
	FIELD("enabled", BOOL),
	FIELD("targetUtilization", INT, .help = "per cent of those waiting that a peak takes"),
	FIELD("scaleDownDelay", NUMBER, .help = "seconds of less demand before it shrinks"),
};

static const struct schema_field warm_pool[] = {
	FIELD("id", STRING),
	FIELD("name", STRING),
	FIELD("runtime", STRING),
	FIELD("template", STRING, .help = "the same"),
	FIELD("owner", STRING | NIL, .help = "of the template; null: it is built in"),
	FIELD("minSize", INT),
	FIELD("maxSize", INT),
	FIELD("securityLevel", STRING),
	FIELD("preloadPackages", STRINGS),
	FIELD("autoScaling", OBJECT, .ref = "AutoScaling"),
	FIELD("createdAt", TIME),
	FIELD("updatedAt", TIME),
};

static const struct schema_field warm_pool_list[] = {
	FIELD("items", LIST, .ref = "WarmPool"),
	NEXT,
};

/* All but the first are for admins, by a key with the scope metrics. */
static const struct schema_field warm_pool_status[] = {
	FIELD("available", BOOL, .help = "a box waits; all else is for admins, with scope metrics"),
	FIELD("ready", INT, .help = "boxes that wait", .optional = 1),
	FIELD("building", INT, .optional = 1),
	FIELD("claimed", INT, .help = "boxes that are in use", .optional = 1),
	FIELD("target", INT, .help = "how many are to wait, by the claims of late", .optional = 1),
	FIELD("hits", INT, .optional = 1),
	FIELD("misses", INT, .help = "claims that had to wait for a new box: missed says why",
	      .optional = 1),
	FIELD("hitRate", NUMBER | NIL, .help = "null before the first claim", .optional = 1),
	FIELD("timeToReadyMs", NUMBER, .help = "to make a box, lately", .optional = 1),
	FIELD("availablePods", INT, .help = "ready, as others call it", .optional = 1),
	FIELD("assignedPods", INT, .help = "claimed", .optional = 1),
	FIELD("pendingPods", INT, .help = "building", .optional = 1),
	BUILDS(.optional = 1),
};

static const struct schema_field snapshot[] = {
	FIELD("id", STRING),
	FIELD("name", STRING | NIL),
	FIELD("owner", STRING),
	FIELD("sandboxId", STRING, .help = "what it was taken of"),
	FIELD("template", STRING),
	FIELD("size", INT, .help = "bytes on disk, of what was new"),
	FIELD("files", INT, .help = "files and directories, of what was new"),
	FIELD("skipped", INT, .help = "what no snapshot can hold: sockets, devices"),
	FIELD("layers", INT, .help = "that a sandbox from it has below what it writes"),
	FIELD("metadata", MAP, .help = "of the sandbox then"),
	FIELD("createdAt", TIME),
};

static const struct schema_field snapshot_list[] = {
	FIELD("items", LIST, .ref = "Snapshot"),
	NEXT,
};

static const char *const volume_states[] = { "making", "ready", "leaving", NULL };

static const struct schema_field volume[] = {
	FIELD("id", STRING),
	FIELD("name", STRING),
	FIELD("owner", STRING),
	FIELD("size", INT, .help = "bytes"),
	FIELD("status", STRING, .choices = volume_states),
	FIELD("createdAt", TIME),
};

static const struct schema_field volume_list[] = {
	FIELD("items", LIST, .ref = "Volume"),
	NEXT,
};

static const struct schema_field template[] = {
	FIELD("id", STRING),
	FIELD("name", STRING, .help = "of one's own: with its version"),
	FIELD("description", STRING),
	FIELD("builtIn", BOOL),
	FIELD("from", STRING, .help = "the built-in template below it"),
	FIELD("resources", OBJECT | NIL, .ref = "Resources", .help = "null: as configured"),
	FIELD("envNames", STRINGS),
	FIELD("layers", INT, .help = "of files that it brings"),
	FIELD("source", STRING, .help = "where its root is from: host, or the name of an image"),
	FIELD("securityLevel", STRING),
	FIELD("user", STRING | NIL, .help = "of commands that name none; null: the box's own"),
	FIELD("workdir", STRING | NIL),
	FIELD("writableRoot", BOOL),
	FIELD("writablePaths", STRINGS),
	FIELD("preload", STRINGS, .help = "modules that a waiting Python has imported"),
	FIELD("preloadNode", STRINGS, .help = "modules that a waiting Node has loaded"),
	FIELD("start", OBJECT | NIL, .ref = "TemplateStart"),
	FIELD("createdAt", TIME | NIL),
};

static const struct schema_field template_start[] = {
	FIELD("command", STRING),
	FIELD("readyCommand", STRING | NIL),
	FIELD("readyPort", INT | NIL),
	FIELD("readyHttp", STRING | NIL),
	FIELD("timeout", NUMBER, .help = "seconds"),
};

static const struct schema_field alias[] = {
	FIELD("name", STRING, .help = "NAME:ALIAS: usable wherever a template is named"),
	FIELD("alias", STRING),
	FIELD("template", STRING, .help = "what it stands for: NAME:VERSION"),
	FIELD("createdAt", TIME),
	FIELD("updatedAt", TIME),
};

static const struct schema_field alias_list[] = {
	FIELD("items", LIST, .ref = "Alias"),
};

static const struct schema_field template_list[] = {
	FIELD("items", LIST, .ref = "Template"),
	NEXT,
};

static const struct schema_field runtime_list[] = {
	FIELD("items", LIST, .ref = "Template"),
};

static const struct schema list[] = {
	SCHEMA("ProfileSetting", "One thing that a profile settles", profile_setting),
	SCHEMA("Profile", "What boxes of it are protected by", profile),
	SCHEMA("ProfileList", "The security profiles", profile_list),
	SCHEMA("Pool", "Finished boxes of one template", pool),
	SCHEMA("PoolList", "The warm pools", pool_list),
	SCHEMA("PoolMissed", "Why claims were not served by boxes that waited", missed),
	SCHEMA("AutoScaling", "How a warm pool follows the demand", scaling),
	SCHEMA("WarmPool", "How many finished boxes of a template wait", warm_pool),
	SCHEMA("WarmPoolList", "A page of warm pools, newest first", warm_pool_list),
	SCHEMA("WarmPoolStatus", "How a warm pool does", warm_pool_status),
	SCHEMA("Snapshot", "What a sandbox had written", snapshot),
	SCHEMA("SnapshotList", "A page of snapshots, newest first", snapshot_list),
	SCHEMA("Volume", "A file system that outlives sandboxes", volume),
	SCHEMA("VolumeList", "A page of volumes, newest first", volume_list),
	SCHEMA("Template", "What sandboxes are made of", template),
	SCHEMA("TemplateStart", "What runs from the beginning, and when it is ready",
	       template_start),
	SCHEMA("Alias", "Another name of a template's version", alias),
	SCHEMA("AliasList", "The aliases of a template", alias_list),
	SCHEMA("TemplateList", "A page of templates, newest first", template_list),
	SCHEMA("RuntimeList", "The built-in templates", runtime_list),
};

const struct schema_group schemas_makings = { list, ARRAY_LEN(list) };
