#include "e2b/encoding.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"

#define WHOLE 1000 /* q=1 */
#define ABSENT (-1)

/* "0.5" as thousandths; what is no weight counts as none. */
static int weight(struct str s)
{
	int q = 0, unit = WHOLE;

	for (size_t i = 0; i < s.len; i++) {
		if (i == 1 && s.data[i] == '.')
			continue;
		if (s.data[i] < '0' || s.data[i] > '9' || i > 4)
			return 0;
		q += (s.data[i] - '0') * unit;
		unit /= 10;
	}
	return q > WHOLE ? WHOLE : q;
}

static int item_weight(struct str params)
{
	struct str param;

	while (str_split(&params, ';', &param)) {
		param = str_trim(param);
		if (param.len > 2 && strncasecmp(param.data, "q=", 2) == 0)
			return weight((struct str){ param.data + 2, param.len - 2 });
	}
	return WHOLE;
}

static bool is(struct str s, const char *name)
{
	return s.len == strlen(name) && strncasecmp(s.data, name, s.len) == 0;
}

struct weights {
	int gzip, identity, any;
};

static struct weights read_weights(const char *header)
{
	struct weights w = { ABSENT, ABSENT, ABSENT };
	struct str rest = str_of(header), item, name;

	while (str_split(&rest, ',', &item)) {
		if (!str_split(&item, ';', &name))
			continue;
		name = str_trim(name);
		if (is(name, "gzip") || is(name, "x-gzip"))
			w.gzip = item_weight(item);
		else if (is(name, "identity"))
			w.identity = item_weight(item);
		else if (is(name, "*"))
			w.any = item_weight(item);
	}
	return w;
}

bool encoding_takes_identity(const char *header)
{
	struct weights w = read_weights(header);

	return w.identity == ABSENT ? w.any != 0 : w.identity > 0;
}

enum encoding encoding_choose(const char *header)
{
	struct weights w = read_weights(header);

	if (w.gzip > 0 && w.gzip >= w.identity)
		return ENCODING_GZIP;
	if (encoding_takes_identity(header))
		return ENCODING_IDENTITY;
	return w.gzip > 0 || (w.gzip == ABSENT && w.any > 0) ? ENCODING_GZIP : ENCODING_REFUSED;
}
