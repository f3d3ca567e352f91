/* Any bytes as YAML, into JSON: what is taken is one JSON value that can be read, but for keys that
 * are there twice and numbers that no double holds. */
#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "config/yaml_json.h"
#include "fuzz.h"
#include "json/jv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf json = { 0 };
	struct jv_doc *doc = NULL;
	struct err err = { 0 };

	if (yaml_json("x", data, size, &json, &err) == 0) {
		int r = jv_parse(buf_str(&json), json.len, json.len + 1, &doc, NULL);

		MUST(r == 0 || r == -EINVAL);
	} else {
		MUST(err.code != 0);
	}
	(void)jv_free(doc);
	buf_done(&json);
	return 0;
}
