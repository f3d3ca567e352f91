#include "sandbox/profile.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "spec/launch.h"

static const struct profile_choice engines[] = {
	{ "native", "the machine's kernel, behind namespaces, a filter and a cgroup", 0 },
	{ "gvisor", "a kernel of its own, in a process of the machine", 0 },
	{ 0 },
};
static const struct profile_choice syscalls[] = {
	{ "all", "every call", 0 },
	{ "standard",
	  "what programs need; nothing that makes namespaces, mounts or loads code "
	  "into the kernel, and of requests to sockets and devices a list",
	  0 },
	{ "strict",
	  "also no Internet sockets, no files in memory, no queues, semaphores and "
	  "shared memory",
	  TEMPLATE_STRICT_CALLS },
	{ 0 },
};
static const struct profile_choice procs[] = {
	{ "whole", "as the kernel has it", 0 },
	{ "masked", "one's own processes; the machine's secrets are masked and nothing can be set",
	  0 },
	{ "processes", "one's own processes and nothing else", TEMPLATE_STRICT_PROC },
	{ 0 },
};
static const struct profile_choice networks[] = {
	{ "host", "the machine's", 0 },
	{ "none", "a loopback of its own", 0 },
	{ 0 },
};
static const struct profile_choice capabilities[] = {
	{ "some", "", 0 },
	{ "none", "not even inside the box", 0 },
	{ 0 },
};
static const struct profile_choice privileges[] = {
	{ "new", "", 0 },
	{ "none", "set-user-id programs give none", 0 },
	{ 0 },
};
static const struct profile_choice roots[] = {
	{ "template", "as the template says: read-only, or copy-on-write for this box alone", 0 },
	{ 0 },
};

/* Nothing may be loosened: every floor is standard's choice. */
const struct profile_setting profile_settings[PROFILE_KEY_COUNT] = {
	[PROFILE_ENGINE] = { "engine", "what stands between a box and the kernel", engines, 0 },
	[PROFILE_SYSCALLS] = { "syscalls", "which system calls are answered", syscalls, 1 },
	[PROFILE_PROC] = { "proc", "what /proc shows", procs, 1 },
	[PROFILE_NETWORK] = { "network", "what can be reached", networks, 1 },
	[PROFILE_CAPABILITIES] = { "capabilities", "of any process", capabilities, 1 },
	[PROFILE_PRIVILEGES] = { "privileges", "that a program can gain", privileges, 1 },
	[PROFILE_ROOT] = { "root", "what the template brought", roots, 0 },
};

const struct profile profiles[PROFILE_ID_COUNT] = {
	[PROFILE_ID_STANDARD] = { "standard",
				  "for code that nobody has read",
				  { 0, 1, 1, 1, 1, 1, 0 } },
	[PROFILE_ID_HIGH] = { "high",
			      "for code that is out to break the kernel",
			      { 1, 2, 2, 1, 1, 1, 0 } },
	[PROFILE_ID_CUSTOM] = { "custom",
				"standard, and whatever of it the request makes stricter",
				{ 0, 1, 1, 1, 1, 1, 0 } },
};

const char *const profile_names[PROFILE_ID_COUNT + 1] = { "standard", "high", "custom", NULL };

const char *profile_unavailable(enum profile_id id)
{
	if (profiles[id].chosen[PROFILE_ENGINE] == 0)
		return NULL;
	return "it needs gVisor, which this version of Holt does not have";
}

int profile_choose(enum profile_key key, const char *choice, uint32_t *flags, struct err *err)
{
	const struct profile_setting *s = &profile_settings[key];

	if (choice[0] == '\0')
		return 0;
	for (unsigned i = 0; s->choices[i].name; i++) {
		if (strcmp(s->choices[i].name, choice) != 0)
			continue;
		if (i < s->floor)
			return err_set(err, EINVAL,
				       "%s: '%s' is weaker than '%s', and this server lets nothing "
				       "be loosened",
				       s->name, choice, s->choices[s->floor].name);
		if (key == PROFILE_ENGINE && i > 0)
			return err_set(err, EINVAL, "engine: %s",
				       profile_unavailable(PROFILE_ID_HIGH));
		*flags |= s->choices[i].flags;
		return 0;
	}
	return err_set(err, EINVAL, "%s: there is no '%.40s'", s->name, choice);
}
