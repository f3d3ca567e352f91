#include "outbound/otlp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "loop/loop.h"
#include "outbound/courier.h"
#include "telemetry/trace.h"
#include "json/jv.h"

#define EVERY_MS 2000u
#define BACKOFF_MS 1000u
#define TIMEOUT_MS 10000u
#define ANSWER_MAX (64u << 10)
#define HEADERS_MAX 8u
#define BODY_MAX (4u << 20) /* a batch of the largest spans is half of it */

struct otlp {
	struct otlp_options o; /* without what was copied */
	char *url;             /* owned, as the headers */
	char *headers[HEADERS_MAX + 1];
	struct tracer *tracer;    /* owned */
	struct loop_timer *timer; /* owned: the next batch, or the next try; and of a flush */
	struct buf body;          /* the batch on its way, or to be tried again */
	size_t n;                 /* spans in it */
	unsigned tries;
	bool is_asking;          /* the courier has it */
	bool is_waiting;         /* for the next try: what comes meanwhile does not hurry it */
	bool is_failing;         /* the log has said so */
	uint64_t flush_until_ms; /* 0: none */
	void (*flushed)(void *user);
	void *flush_user;
};

/* ---- what became of a batch ---- */

static void next_in(struct otlp *o, uint64_t ms)
{
	o->is_waiting = false;
	loop_timer_start(o->timer, ms, 0);
}

static void end_flush(struct otlp *o)
{
	void (*flushed)(void *user) = o->flushed;

	o->flushed = NULL;
	loop_timer_stop(o->timer);
	flushed(o->flush_user);
}

static void batch_over(struct otlp *o, enum trace_fate fate, size_t n)
{
	tracer_count(o->tracer, fate, n);
	buf_done(&o->body);
	o->n = 0;
	o->tries = 0;
	if (o->flushed && (fate != TRACE_SENT || tracer_waiting(o->tracer) == 0))
		return end_flush(o);
	next_in(o, o->flushed || tracer_waiting(o->tracer) >= o->o.batch ? 0 : o->o.every_ms);
}

/* {"partialSuccess": {"rejectedSpans": "2"}}: not all that was taken was good. */
static size_t count_rejected(const struct otlp *o, const struct buf *body)
{
	struct jv_doc *doc = NULL;
	struct jv v;
	uint64_t n = 0;
	int64_t signed_n = 0;

	if (body->len == 0 || jv_parse(body->data, body->len, ANSWER_MAX, &doc, NULL) < 0)
		return 0;
	v = jv_get(jv_get(jv_root(doc), "partialSuccess"), "rejectedSpans");
	if (jv_text(v))
		(void)parse_u64(jv_text(v), 0, UINT64_MAX, &n);
	else if (jv_i64(v, &signed_n) == 0 && signed_n > 0)
		n = (uint64_t)signed_n;
	(void)jv_free(doc);
	return n < o->n ? (size_t)n : o->n;
}

static bool is_worth_another_try(const struct courier_answer *a)
{
	return a->status == 0 || a->status == 429 || a->status == 502 || a->status == 503 ||
	       a->status == 504;
}

static void try_again(struct otlp *o, const struct courier_answer *a)
{
	uint64_t ms = (uint64_t)o->o.backoff_ms << (o->tries - 1);

	if (a->retry_after_s >= 0)
		ms = (uint64_t)a->retry_after_s * 1000;
	o->is_waiting = true;
	loop_timer_start(o->timer, ms < OTLP_WAIT_MAX_MS ? ms : OTLP_WAIT_MAX_MS, 0);
}

/* Once, until it works again: a dead collector does not fill the log. */
static void say(struct otlp *o, const struct courier_answer *a)
{
	if (o->is_failing == (a->r < 0))
		return;
	o->is_failing = a->r < 0;
	if (o->is_failing)
		log_warn("otlp", "traces do not reach the collector: %s", a->err.text);
	else
		log_info("otlp", "traces reach the collector");
}

static void answered(void *user, const struct courier_answer *a)
{
	struct otlp *o = user;
	bool is_taken = a->status >= 200 && a->status < 300;
	size_t rejected;

	o->is_asking = false;
	say(o, a);
	if (is_taken) {
		rejected = count_rejected(o, &a->body);
		tracer_count(o->tracer, TRACE_REFUSED, rejected);
		batch_over(o, TRACE_SENT, o->n - rejected);
	} else if (!is_worth_another_try(a)) {
		batch_over(o, TRACE_REFUSED, o->n);
	} else if (o->flushed || o->tries >= OTLP_TRIES) {
		batch_over(o, TRACE_UNSENT, o->n);
	} else {
		try_again(o, a);
	}
}

/* ---- a batch ---- */

static int ask(struct otlp *o)
{
	struct courier_request req = { .method = "POST",
				       .url = o->url,
				       .headers = (const char *const *)o->headers,
				       .type = "application/json",
				       .body = o->body.data,
				       .body_len = o->body.len,
				       .max = ANSWER_MAX,
				       .timeout_ms = TIMEOUT_MS,
				       .is_untraced = true };

	return courier_send(o->o.courier, &req, answered, o);
}

static uint64_t left_of_flush(const struct otlp *o)
{
	uint64_t now = clock_now_ms();

	return o->flush_until_ms > now ? o->flush_until_ms - now : 0;
}

static void send_batch(struct otlp *o)
{
	struct courier_answer none = { .retry_after_s = -1 };

	o->is_waiting = false;
	if (o->n == 0 && tracer_waiting(o->tracer) == 0)
		return o->flushed ? end_flush(o) : next_in(o, o->o.every_ms);
	if (o->n == 0) {
		buf_init(&o->body, BODY_MAX);
		if (tracer_take(o->tracer, o->o.batch, &o->body, &o->n) < 0) {
			o->n = 0; /* it has counted them */
			return batch_over(o, TRACE_DROPPED, 0);
		}
	}
	o->tries++;
	o->is_asking = true;
	none.r = ask(o);
	if (none.r == 0) {
		if (o->flushed)
			loop_timer_start(o->timer, left_of_flush(o), 0);
		return;
	}
	(void)err_sys(&none.err, none.r, "the request could not be made");
	answered(o, &none);
}

static void timed(void *user)
{
	struct otlp *o = user;

	if (!o->is_asking)
		send_batch(o);
	else if (o->flushed) /* the time is over */
		end_flush(o);
}

/* From inside of a span's end: the work is for the loop's next turn. */
static void batch_is_full(void *user)
{
	struct otlp *o = user;

	if (!o->is_asking && !o->is_waiting)
		loop_timer_start(o->timer, 0, 0);
}

void otlp_flush(struct otlp *o, uint64_t max_ms, void (*done)(void *user), void *user)
{
	o->flushed = done;
	o->flush_user = user;
	o->flush_until_ms = clock_now_ms() + max_ms;
	/* One that is on its way may take as long as the flush; else it begins. */
	loop_timer_start(o->timer, o->is_asking ? max_ms : 0, 0);
}

/* ---- making ---- */

/* In place: "%41" is "A". */
static bool unescape(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++, to++) {
		*to = *p;
		if (*p != '%')
			continue;
		if (strlen(p) < 3 || decode_hex(p + 1, 2, to, 1) != 1)
			return false;
		p += 2;
	}
	*to = '\0';
	return true;
}

static bool is_token(struct str name)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) &&
		    (c == '\0' || !strchr(others, c)))
			return false;
	}
	return name.len > 0;
}

static bool is_visible(const char *value)
{
	for (; *value; value++)
		if (*value < ' ' || *value > '~')
			return false;
	return true;
}

/* "name=value" as a header. Its text is never shown: it is a secret. */
static int add_header(struct otlp *o, size_t n, struct str one, struct err *err)
{
	struct str name;
	_free_ char *value = NULL;
	struct buf b = { 0 };

	if (!memchr(one.data, '=', one.len) || !str_split(&one, '=', &name))
		return err_set(err, EINVAL, "otlp_headers: want name=value,...");
	value = str_dup(str_trim(one));
	if (!value)
		return err_sys(err, ENOMEM, "otlp");
	name = str_trim(name);
	if (!is_token(name) || !unescape(value) || !is_visible(value))
		return err_set(err, EINVAL, "otlp_headers: number %zu is no header", n + 1);
	(void)buf_printf(&b, "%.*s: %s", (int)name.len, name.data, value);
	explicit_bzero(value, strlen(value));
	o->headers[n] = buf_take(&b);
	return o->headers[n] ? 0 : err_sys(err, ENOMEM, "otlp");
}

static int take_headers(struct otlp *o, const char *text, struct err *err)
{
	struct str rest = str_of(text), one;
	size_t n = 0;
	int r = 0;

	while (r == 0 && str_split(&rest, ',', &one)) {
		one = str_trim(one);
		if (one.len == 0)
			continue;
		if (n == HEADERS_MAX)
			return err_set(err, EINVAL, "otlp_headers: at most %u", HEADERS_MAX);
		r = add_header(o, n++, one, err);
	}
	return r;
}

static int take_url(struct otlp *o, const char *endpoint, struct err *err)
{
	struct str url = str_of(endpoint);
	struct buf b = { .max = COURIER_URL_MAX };

	while (url.len > 0 && url.data[url.len - 1] == '/')
		url.len--;
	(void)buf_append(&b, url.data, url.len);
	if (!str_ends(url, OTLP_PATH))
		(void)buf_puts(&b, OTLP_PATH);
	o->url = b.failed ? NULL : buf_take(&b);
	buf_done(&b);
	if (!o->url)
		return err_set(err, EINVAL, "otlp_endpoint: is longer than %u bytes",
			       COURIER_URL_MAX);
	return courier_check_url(o->url, err);
}

int otlp_create(const struct otlp_options *options, struct otlp **ret, struct err *err)
{
	_cleanup_(otlp_free_p) struct otlp *o = calloc(1, sizeof(*o));
	struct tracer_options t = { .service = options->service,
				    .version = options->version,
				    .sample = options->sample,
				    .metrics = options->metrics,
				    .batch = options->batch ? options->batch : OTLP_BATCH,
				    .full = batch_is_full,
				    .user = o };
	int r;

	if (!o)
		return err_sys(err, ENOMEM, "otlp");
	o->o = *options;
	o->o.batch = (uint32_t)t.batch;
	o->o.every_ms = options->every_ms ? options->every_ms : EVERY_MS;
	o->o.backoff_ms = options->backoff_ms ? options->backoff_ms : BACKOFF_MS;
	r = take_url(o, options->endpoint, err);
	if (r == 0)
		r = take_headers(o, options->headers, err);
	if (r < 0)
		return r;
	o->tracer = tracer_create(&t);
	r = o->tracer ? loop_timer_create(options->loop, timed, o, &o->timer) : -ENOMEM;
	if (r < 0)
		return err_sys(err, r, "otlp");
	next_in(o, o->o.every_ms);
	*ret = TAKE(o);
	return 0;
}

struct otlp *otlp_free(struct otlp *o)
{
	if (!o)
		return NULL;
	for (size_t i = 0; o->headers[i]; i++) {
		explicit_bzero(o->headers[i], strlen(o->headers[i]));
		free(o->headers[i]);
	}
	o->timer = loop_timer_free(o->timer);
	o->tracer = tracer_free(o->tracer);
	buf_done(&o->body);
	free(o->url);
	free(o);
	return NULL;
}

struct tracer *otlp_tracer(struct otlp *o)
{
	return o ? o->tracer : NULL;
}
