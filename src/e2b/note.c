#include "e2b/note.h"

#include <errno.h>
#include <string.h>

#include "api/network.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "sandbox/lifecycle.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define ENTRIES_MAX 256 /* of one list of rules */
#define ENTRY_MAX 256

/* ---- checking ---- */

struct network {
	struct jv_strings allow_out, deny_out;
	bool allow_public;
	const char *mask_host;
	struct jv rules, proxy, ports;
	bool internet; /* of an update */
};

static const struct jv_field network_fields[] = {
	JV_FIELD("allowOut", STRINGS, struct network, allow_out, .flags = JV_NULLABLE,
		 .max = ENTRIES_MAX, .text_max = ENTRY_MAX),
	JV_FIELD("denyOut", STRINGS, struct network, deny_out, .flags = JV_NULLABLE,
		 .max = ENTRIES_MAX, .text_max = ENTRY_MAX),
	JV_FIELD("allowPublicTraffic", BOOL, struct network, allow_public, .flags = JV_NULLABLE),
	JV_FIELD("maskRequestHost", STRING, struct network, mask_host, .flags = JV_NULLABLE,
		 .max = NOTE_HOST_MAX),
	JV_FIELD("rules", VALUE, struct network, rules, .flags = JV_NULLABLE),
	JV_FIELD("egressProxy", VALUE, struct network, proxy, .flags = JV_NULLABLE),
	JV_FIELD("httpsPorts", VALUE, struct network, ports, .flags = JV_NULLABLE),
	JV_FIELD("allow_internet_access", BOOL, struct network, internet, .flags = JV_NULLABLE),
};
#define FIELDS (sizeof(network_fields) / sizeof(network_fields[0]))

static bool is_said(struct jv v)
{
	return jv_kind(v) != JV_ABSENT && jv_kind(v) != JV_NULL;
}

static int check_kind(const char *name, struct jv v, enum jv_kind want, const char *word,
		      struct err *err)
{
	if (!is_said(v) || jv_kind(v) == want)
		return 0;
	return err_set(err, EINVAL, "network.%s: want %s", name, word);
}

/* Rules put headers, secrets among them, into requests on their way, which are TLS that nobody
 * opens here. Who was told nothing would rely on it; and so on a proxy that is passed by. */
static int check_refused(const struct network *n, struct err *err)
{
	if (jv_len(n->rules) > 0)
		return err_set(err, EINVAL,
			       "network.rules: this server changes no requests on their way, "
			       "because it does not open TLS");
	if (jv_len(n->proxy) > 0)
		return err_set(err, EINVAL,
			       "network.egressProxy: this server sends nothing through a proxy of "
			       "others");
	return 0;
}

static int check_terms(const struct network *n, struct err *err)
{
	struct network_terms terms = { .allow = n->allow_out, .deny = n->deny_out };
	struct err why = { 0 };
	int r = network_check(&terms, &why);

	return r < 0 ? err_set(err, -r, "network: %s", why.text) : 0;
}

static int check_network(struct jv v, struct arena *a, struct err *err)
{
	struct jv_problem problem = { 0 };
	struct network n = { 0 };
	int r;

	if (!is_said(v))
		return 0;
	r = jv_decode_known(v, network_fields, FIELDS, a, &n, &problem);
	if (r == -ENOMEM)
		return err_sys(err, ENOMEM, "network");
	if (r < 0)
		return err_set(err, EINVAL, "network%s%s: %s", problem.field[0] ? "." : "",
			       problem.field, problem.text);
	r = check_kind("rules", n.rules, JV_OBJECT, "an object", err);
	if (r == 0)
		r = check_kind("egressProxy", n.proxy, JV_OBJECT, "an object", err);
	if (r == 0)
		r = check_kind("httpsPorts", n.ports, JV_ARRAY, "a list", err);
	if (r == 0)
		r = check_refused(&n, err);
	return r < 0 ? r : check_terms(&n, err);
}

/* ---- writing ---- */

static void write_one(struct jw *w, const char *name, struct jv v)
{
	if (!is_said(v))
		return;
	jw_key(w, name);
	jw_value(w, v);
}

static const char *const outward[] = { "allowOut", "denyOut" };
static const char *const inward[] = { "allowPublicTraffic", "maskRequestHost", "httpsPorts" };
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* What goes out is as one says, what comes in as the other. */
static void write_network(struct jw *w, struct jv out, struct jv in)
{
	if (!is_said(out) && !is_said(in))
		return;
	jw_key(w, "network");
	jw_object_begin(w);
	for (size_t i = 0; i < LEN(outward); i++)
		write_one(w, outward[i], jv_get(out, outward[i]));
	for (size_t i = 0; i < LEN(inward); i++)
		write_one(w, inward[i], jv_get(in, inward[i]));
	jw_object_end(w);
}

static int finish(struct jw *w, struct buf *b, struct err *err)
{
	jw_object_end(w);
	if (jw_end(w) < 0)
		return err_sys(err, ENOMEM, "network");
	if (b->len > SANDBOX_NOTE_MAX)
		return err_set(err, EINVAL, "network: %zu bytes, limit %u", b->len,
			       SANDBOX_NOTE_MAX);
	return 0;
}

int note_write(const struct note *n, struct arena *a, struct buf *b, struct err *err)
{
	struct jw w = jw_begin(b);
	int r = check_network(n->network, a, err);

	jw_object_begin(&w);
	jw_str_field(&w, "template", n->template);
	if (n->internet >= 0)
		jw_bool_field(&w, "allowInternetAccess", n->internet > 0);
	write_network(&w, n->network, n->network);
	return r < 0 ? r : finish(&w, b, err);
}

static struct jv_doc *parse(const char *note)
{
	struct jv_doc *doc = NULL;

	if (note[0] != '\0')
		(void)jv_parse(note, strlen(note), SANDBOX_NOTE_MAX, &doc, NULL);
	return doc;
}

int note_update(const char *note, struct jv update, struct arena *a, struct buf *b, struct err *err)
{
	struct jv_doc *doc = parse(note);
	struct jv root = doc ? jv_root(doc) : (struct jv){ 0 };
	struct jv internet = jv_get(update, "allow_internet_access");
	struct jw w = jw_begin(b);
	int r = check_network(update, a, err);

	jw_object_begin(&w);
	write_one(&w, "template", jv_get(root, "template"));
	write_one(&w, "allowInternetAccess",
		  is_said(internet) ? internet : jv_get(root, "allowInternetAccess"));
	write_network(&w, update, jv_get(root, "network"));
	r = r < 0 ? r : finish(&w, b, err);
	(void)jv_free(doc);
	return r;
}

/* ---- reading ---- */

void note_write_template(struct jw *w, const char *note, const char *template)
{
	struct jv_doc *doc = parse(note);
	const char *asked = doc ? jv_text(jv_get(jv_root(doc), "template")) : NULL;

	jw_str_field(w, "templateID", asked ? asked : template);
	jw_str_field(w, "alias", asked ? asked : template);
	(void)jv_free(doc);
}

void note_write_network(struct jw *w, const char *note, bool has_way)
{
	struct jv_doc *doc = parse(note);
	bool is_asked = true;

	if (!doc)
		return;
	(void)jv_bool(jv_get(jv_root(doc), "allowInternetAccess"), &is_asked);
	jw_bool_field(w, "allowInternetAccess", has_way && is_asked);
	write_one(w, "network", jv_get(jv_root(doc), "network"));
	(void)jv_free(doc);
}

bool note_is_of(const char *note, const char *template, const char *asked)
{
	struct jv_doc *doc = parse(note);
	const char *name = doc ? jv_text(jv_get(jv_root(doc), "template")) : NULL;
	bool yes = strcmp(name ? name : template, asked) == 0;

	(void)jv_free(doc);
	return yes;
}

void note_traffic(const char *note, struct note_traffic *ret)
{
	struct jv_doc *doc = parse(note);
	struct jv network = doc ? jv_get(jv_root(doc), "network") : (struct jv){ 0 };
	const char *mask = jv_text(jv_get(network, "maskRequestHost"));

	*ret = (struct note_traffic){ 0 };
	if (doc && jv_kind(jv_root(doc)) == JV_OBJECT &&
	    (!is_said(network) || jv_kind(network) == JV_OBJECT))
		ret->is_public = true;
	(void)jv_bool(jv_get(network, "allowPublicTraffic"), &ret->is_public);
	if (mask)
		(void)str_copy(ret->mask_host, sizeof(ret->mask_host), mask);
	(void)jv_free(doc);
}
