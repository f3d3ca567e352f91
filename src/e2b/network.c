#include "e2b/network.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "base/arena.h"
#include "config/config.h"
#include "net/http.h"
#include "sandbox/lifecycle.h"
#include "sandbox/sandbox.h"
#include "json/jv.h"

static int take_list(struct jv list, struct arena *a, struct jv_strings *ret)
{
	const char **items = arena_array(a, jv_len(list) + 1, sizeof(*items));
	size_t n = 0;

	if (!items)
		return -ENOMEM;
	JV_FOREACH (list, it) {
		const char *text = jv_text(it.value);

		items[n] = text ? arena_strndup(a, text, strlen(text)) : "";
		if (!items[n++])
			return -ENOMEM;
	}
	*ret = (struct jv_strings){ items, n };
	return 0;
}

/* What is not said is open, as with E2B; whether there is a way at all is the operator's to say. */
static int read_terms(struct jv root, struct arena *a, struct network_terms *ret)
{
	struct jv network = jv_get(root, "network");
	bool is_open = true;
	int r;

	(void)jv_bool(jv_get(root, "allowInternetAccess"), &is_open);
	ret->is_open = is_open;
	r = take_list(jv_get(network, "allowOut"), a, &ret->allow);
	return r < 0 ? r : take_list(jv_get(network, "denyOut"), a, &ret->deny);
}

int e2b_network_terms(const char *note, struct arena *a, struct network_terms *ret)
{
	struct jv_doc *doc = NULL;
	int r = jv_parse(note, strlen(note), SANDBOX_NOTE_MAX, &doc, NULL);

	*ret = (struct network_terms){ 0 };
	if (r == 0)
		r = read_terms(jv_root(doc), a, ret);
	(void)jv_free(doc);
	if (r < 0)
		*ret = (struct network_terms){ 0 };
	return r == -ENOMEM ? r : 0;
}

void e2b_network_open(struct api_call *c, struct sandbox *sb,
		      void (*ready)(void *user, uint16_t port), void *user)
{
	struct network_terms terms;
	struct sandbox_info info;

	sandbox_info(sb, &info);
	if (!c->api->deps.config->internet ||
	    e2b_network_terms(info.note, http_arena(c->http), &terms) < 0)
		return ready(user, 0);
	network_open(c, sb, &terms, ready, user);
}

void e2b_network_changed(struct api_call *c, struct sandbox *sb)
{
	struct network_terms terms;
	struct sandbox_info info;

	sandbox_info(sb, &info);
	(void)e2b_network_terms(info.note, http_arena(c->http), &terms); /* without memory: none */
	network_change(c->api, info.id, &terms);
}
