#include "sandbox/context_frames.h"

#include <string.h>

#include "base/str.h"

#define KIND_AT (1 + ID_LEN)
#define SIZE_AT (KIND_AT + 1)

void context_frames_begin(struct context_frames *f, const char *token, size_t message_max)
{
	(void)str_copy(f->token, sizeof(f->token), token);
	f->n_head = f->body_left = 0;
	f->is_too_long = false;
	f->message_max = message_max;
	buf_done(&f->message);
}

void context_frames_done(struct context_frames *f)
{
	buf_done(&f->message);
	f->n_head = f->body_left = 0;
	f->token[0] = '\0';
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes of the body that a whole head announces. */
static size_t body_size(const struct context_frames *f)
{
	size_t n = 0;

	for (size_t i = SIZE_AT; i < FRAME_HEAD; i++)
		n = n * 16 + (size_t)hex_digit(f->head[i]);
	return n;
}

/* Whether c can stand at this place of a head, behind those that are there. */
static bool is_head_byte(const struct context_frames *f, char c)
{
	size_t at = f->n_head;

	if (at == 0)
		return c == FRAME_START;
	if (at < KIND_AT)
		return f->token[0] != '\0' && c == f->token[at - 1];
	if (at == KIND_AT)
		return c != '\0' && strchr("prdxem", c) != NULL;
	return hex_digit(c) >= 0;
}

static void give_bytes(const struct context_sink *sink, const char *data, size_t n)
{
	if (n > 0)
		sink->bytes(sink->user, data, n);
}

/* What looked like a head is none. */
static void give_head(struct context_frames *f, const struct context_sink *sink)
{
	size_t n = f->n_head;

	f->n_head = 0;
	give_bytes(sink, f->head, n);
}

static void end_frame(struct context_frames *f, const struct context_sink *sink)
{
	enum frame_kind kind = (enum frame_kind)f->head[KIND_AT];
	struct buf message = f->message;
	bool is_too_long = f->is_too_long;

	f->n_head = 0;
	if (kind == FRAME_PART)
		return;
	f->message = (struct buf){ 0 };
	f->is_too_long = false;
	sink->message(sink->user, kind, is_too_long ? NULL : buf_str(&message),
		      is_too_long ? 0 : message.len);
	buf_done(&message);
}

static void add_body(struct context_frames *f, const char *data, size_t n)
{
	f->message.max = f->message_max ? f->message_max : 1;
	if (!f->is_too_long && buf_append(&f->message, data, n) < 0)
		f->is_too_long = true;
	if (f->is_too_long)
		buf_done(&f->message);
	f->body_left -= n;
}

/* Takes at least one of n > 0 bytes while a head is being read or looked for. */
static size_t feed_head(struct context_frames *f, const char *data, size_t n,
			const struct context_sink *sink)
{
	const char *start;

	if (f->n_head == 0) {
		start = f->token[0] ? memchr(data, FRAME_START, n) : NULL;
		if (!start || start > data) {
			n = start ? (size_t)(start - data) : n;
			give_bytes(sink, data, n);
			return n;
		}
	}
	if (!is_head_byte(f, data[0])) {
		give_head(f, sink);
		return 0; /* it may begin another */
	}
	f->head[f->n_head++] = data[0];
	if (f->n_head < FRAME_HEAD)
		return 1;
	f->body_left = body_size(f);
	if (f->body_left > FRAME_BODY_MAX) {
		f->body_left = 0;
		give_head(f, sink);
	} else if (f->body_left == 0) {
		end_frame(f, sink);
	}
	return 1;
}

void context_frames_feed(struct context_frames *f, const char *data, size_t n,
			 const struct context_sink *sink)
{
	while (n > 0) {
		size_t taken;

		if (f->body_left > 0) {
			taken = n < f->body_left ? n : f->body_left;
			add_body(f, data, taken);
			if (f->body_left == 0)
				end_frame(f, sink);
		} else {
			taken = feed_head(f, data, n, sink);
		}
		data += taken;
		n -= taken;
	}
}

void context_frames_flush(struct context_frames *f, const struct context_sink *sink)
{
	if (f->body_left == 0)
		give_head(f, sink);
	f->n_head = f->body_left = 0;
}
