/* What was asked of a tool, for the audit log: the request that brought it does not say. */
#include "base/buf.h"
#include "sandbox/audit_log.h"
#include "tools/impl.h"
#include "json/jw.h"

bool tool_note(const struct tool_call *t, const char *outcome)
{
	struct audit_log *audit = t->all->deps.audit;
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (!audit)
		return true;
	if (!audit_log_is_writable(audit))
		return false;
	jw_object_begin(&w);
	jw_str_field(&w, "keyId", t->who.key_id);
	jw_str_field(&w, "tool", t->tool->name);
	jw_str_field(&w, "sandbox", t->box_id);
	jw_str_field(&w, "outcome", outcome);
	jw_object_end(&w);
	if (jw_end(&w) < 0)
		return false;
	audit_log_append(audit, t->who.owner, "tool", buf_str(&b));
	return true;
}
