/* The audit log: its chain checked, and all of it as lines of JSON, which can be checked elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/command.h"
#include "telemetry/audit.h"
#include "json/jw.h"

#define TARGET "/api/v1/audit"
#define FILE_MAX (1u << 30)
#define LINE_MAX_BYTES (1u << 20)

struct audit_args {
	struct client_args client;
	const char *head;
};

#define AT(field) offsetof(struct audit_args, field)
const struct opt audit_verify_opts[] = {
	{ .name = "head",
	  .type = OPT_TEXT,
	  .arg = "SEQ:HASH",
	  .help = "a line that must be there as it was: as an earlier verify told it",
	  .offset = AT(head) },
	CLIENT_OPTS(struct audit_args, client),
	{ 0 },
};

struct walk {
	struct audit_chain chain;
	struct audit_chain want;  /* seq 0: nothing */
	struct audit_chain begin; /* the last line that was cut; seq 0: none was */
	bool has_begun;           /* its first line has been seen */
	bool has_cut;             /* there is a line that says so */
	bool is_told_cut;         /* by a line that was checked */
	struct err *err;
};

static int read_hash(struct jv v, uint8_t hash[HASH_LEN])
{
	const char *hex = jv_text(v);

	return hex && strlen(hex) == 2 * HASH_LEN &&
			       decode_hex(hex, 2 * HASH_LEN, hash, HASH_LEN) == HASH_LEN
		       ? 0
		       : -EBADMSG;
}

/* Whether the line says that the log was cut so that it begins behind seq. */
static bool is_cut(struct jv item, uint64_t seq, uint8_t ret_hash[HASH_LEN])
{
	const char *kind = jv_text(jv_get(item, "kind"));
	struct jv data = jv_get(item, "data");
	uint64_t cut = 0;

	return kind && strcmp(kind, AUDIT_CUT_KIND) == 0 &&
	       jv_u64(jv_get(data, "seq"), &cut) == 0 && cut == seq &&
	       read_hash(jv_get(data, "hash"), ret_hash) == 0;
}

/* Looks for it; what it finds counts when the line itself was checked. */
static int find_cut(void *user, struct jv item)
{
	struct walk *k = user;

	k->has_cut |= is_cut(item, k->begin.seq, k->begin.hash);
	return 0;
}

/* One line, as the daemon or a file has it. */
static int check_item(void *user, struct jv item)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct walk *k = user;
	struct jw w = jw_begin(&text);
	struct audit_record rec = { .owner = jv_text(jv_get(item, "owner")),
				    .kind = jv_text(jv_get(item, "kind")) };
	const char *at = jv_text(jv_get(item, "at"));
	uint8_t hash[HASH_LEN], cut[HASH_LEN];
	int r;

	jw_value(&w, jv_get(item, "data"));
	if (jw_end(&w) < 0)
		return err_sys(k->err, ENOMEM, "audit");
	rec.text = text.data;
	if (jv_u64(jv_get(item, "seq"), &rec.seq) < 0 || !rec.owner || !rec.kind || !at ||
	    clock_from_iso(at, &rec.at_ms) < 0 || read_hash(jv_get(item, "hash"), hash) < 0)
		return err_set(k->err, EBADMSG, "behind line %" PRIu64 ": that is no line",
			       k->chain.seq);
	r = audit_check(&k->chain, &rec, hash, k->err);
	if (r == 0 && rec.seq == k->want.seq && memcmp(hash, k->want.hash, HASH_LEN) != 0)
		return err_set(k->err, EBADMSG, "line %" PRIu64 " is another than it was", rec.seq);
	if (r == 0 && k->begin.seq > 0 && is_cut(item, k->begin.seq, cut))
		k->is_told_cut |= memcmp(cut, k->begin.hash, HASH_LEN) == 0;
	return r;
}

/* The first line that is there: what was before it must have been cut. */
static void begin_at(struct walk *k, struct jv first)
{
	uint64_t seq = 0;

	(void)jv_u64(jv_get(first, "seq"), &seq);
	k->has_begun = true;
	k->begin = (struct audit_chain){ .seq = seq > 0 ? seq - 1 : 0 };
}

static int check_cut(const struct walk *k, bool is_told)
{
	if (k->begin.seq == 0 || is_told)
		return 0;
	return err_set(k->err, EBADMSG,
		       "lines 1 to %" PRIu64 " are missing, and none says that they were cut",
		       k->begin.seq);
}

static int check_begin(const struct walk *k)
{
	uint64_t cut = k->begin.seq;
	int r = check_cut(k, k->is_told_cut);

	if (r < 0)
		return r;
	if (k->want.seq == cut && cut > 0 && memcmp(k->want.hash, k->begin.hash, HASH_LEN) != 0)
		return err_set(k->err, EBADMSG, "line %" PRIu64 " was another than that", cut);
	return 0;
}

static int check_end(const struct walk *k, struct jv head)
{
	const char *hex = jv_text(jv_get(head, "hash"));
	char own[2 * HASH_LEN + 1];
	bool intact = false;
	uint64_t seq = 0;

	encode_hex(k->chain.hash, HASH_LEN, own);
	if (jv_u64(jv_get(head, "seq"), &seq) < 0 || !hex ||
	    jv_bool(jv_get(head, "isIntact"), &intact) < 0)
		return err_set(k->err, EPROTO, "the daemon's answer has no head");
	if (!intact)
		return err_set(k->err, EBADMSG,
			       "the daemon found another end at its start than its head says");
	/* Lines that came since the walk are behind its end. */
	if (seq < k->chain.seq || (seq == k->chain.seq && strcmp(own, hex) != 0))
		return err_set(k->err, EBADMSG, "the end is not line %" PRIu64 " of the head", seq);
	return 0;
}

static int tell(const struct walk *k)
{
	char head[AUDIT_HEAD_SIZE];
	int r = check_begin(k);

	if (r < 0)
		return r;
	if (k->want.seq > k->chain.seq)
		return err_set(k->err, EBADMSG,
			       "line %" PRIu64 " is missing: the log ends with %" PRIu64,
			       k->want.seq, k->chain.seq);
	audit_head_format(&k->chain, head);
	if (k->begin.seq > 0 &&
	    printf("lines 1 to %" PRIu64 " were cut because of their age\n", k->begin.seq) < 0)
		return -EIO;
	if (k->want.seq > 0 && k->want.seq < k->begin.seq &&
	    printf("line %" PRIu64 " was among them: it cannot be checked\n", k->want.seq) < 0)
		return -EIO;
	return printf("%" PRIu64 " lines, all as they were written; head %s\n",
		      k->chain.seq - k->begin.seq, head) < 0
		       ? -EIO
		       : 0;
}

static int verify_daemon(struct client *c, struct walk *k)
{
	_cleanup_(client_doc_done) struct client_doc before = { 0 };
	int r = client_json(c, "GET", TARGET "?limit=1", NULL, &before, k->err);

	begin_at(k, jv_at(jv_get(jv_root(before.doc), "items"), 0));
	if (r == 0 && k->begin.seq > 0)
		r = client_list(c, TARGET "?kind=" AUDIT_CUT_KIND, find_cut, k, k->err);
	if (r == 0)
		r = check_cut(k, k->has_cut);
	k->chain = k->begin;
	if (r == 0)
		r = client_list(c, TARGET, check_item, k, k->err);
	if (r == 0 && k->chain.seq == k->begin.seq)
		return tell(k);
	/* The head of before: it must be among what was read. */
	if (r == 0) {
		struct walk end = *k;
		uint64_t seq = 0;

		(void)jv_u64(jv_get(jv_get(jv_root(before.doc), "head"), "seq"), &seq);
		if (seq > k->chain.seq)
			return err_set(k->err, EBADMSG,
				       "the end is missing: %" PRIu64 " lines of %" PRIu64,
				       k->chain.seq, seq);
		if (seq == k->chain.seq)
			r = check_end(&end, jv_get(jv_root(before.doc), "head"));
	}
	return r < 0 ? r : tell(k);
}

static int each_line(const struct buf *text, int (*each)(void *user, struct jv item),
		     struct walk *k)
{
	struct str rest = { text->len > 0 ? text->data : "", text->len }, line;
	int r = 0;

	while (r == 0 && str_split(&rest, '\n', &line)) {
		struct jv_doc *doc = NULL;

		r = jv_parse(line.data, line.len, LINE_MAX_BYTES, &doc, k->err);
		if (r == 0 && !k->has_begun)
			begin_at(k, jv_root(doc));
		if (r == 0)
			r = each(k, jv_root(doc));
		(void)jv_free(doc);
	}
	return r;
}

static int verify_file(const char *path, struct walk *k)
{
	_cleanup_(buf_done) struct buf text = { .max = FILE_MAX };
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd_slurp(fd, &text);

	if (r < 0)
		return err_sys(k->err, r, "'%s'", path);
	r = each_line(&text, find_cut, k);
	if (r == 0)
		r = check_cut(k, k->has_cut);
	k->chain = k->begin;
	if (r == 0)
		r = each_line(&text, check_item, k);
	return r < 0 ? r : tell(k);
}

static int verify(struct client *c, void *args, int n, char **operands, struct err *err)
{
	const struct audit_args *a = args;
	struct walk k = { .err = err };

	if (a->head && audit_head_parse(a->head, &k.want) < 0)
		return err_set(err, EINVAL, "--head: want SEQ:HASH");
	return n > 0 ? verify_file(operands[0], &k) : verify_daemon(c, &k);
}

static int print_item(void *user, struct jv item)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_value(&w, item);
	if (jw_end(&w) < 0)
		return err_sys(user, ENOMEM, "audit");
	return printf("%s\n", b.data) < 0 ? err_sys(user, EIO, "standard output") : 0;
}

static int export(struct client *c, void *args, int n, char **operands, struct err *err)
{
	(void)args;
	(void)n;
	(void)operands;
	return client_list(c, TARGET, print_item, err, err);
}

int cmd_audit_verify(const struct command *cmd, int argc, char **argv)
{
	struct audit_args args = { 0 };
	struct client_task task = { &args, &args.client, 0, 1, verify };

	return client_run(cmd, argc, argv, &task);
}

int cmd_audit_export(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 0, 0, export };

	return client_run(cmd, argc, argv, &task);
}
