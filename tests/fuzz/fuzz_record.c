/* Any bytes as the record of a box: what is taken for one is within bounds, and would be written
 * just so. Then the same bytes as the two texts of /proc by which its process is known. */
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "fuzz.h"
#include "launch/ids.h"
#include "launch/process.h"
#include "launch/record.h"

static void check_record(const uint8_t *data, size_t size)
{
	char again[RECORD_MAX];
	struct record rec;

	if (record_get(data, size, &rec) < 0)
		return;
	MUST(id_is_valid(rec.id) && spec_tag_is_valid(rec.tag));
	MUST(strlen(rec.boot_id) == BOOT_ID_LEN && cgroup_name_is_valid(rec.group.name));
	MUST(rec.pid > 1 && (rec.uid_base == 0 || ids_is_base(rec.uid_base)));
	MUST(rec.limits.memory_bytes >= LIMIT_MEMORY_MIN && rec.limits.pids >= LIMIT_PIDS_MIN);
	MUST(record_put(again, sizeof(again), &rec) == (long)size);
	MUST(memcmp(again, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *place = NULL;
	uint64_t ticks;

	check_record(data, size);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	(void)process_parse_start(text, &ticks);
	(void)process_parse_is_init(text);
	if (cgroups_find("abcdefghij0123456789", text, &place) == 0)
		MUST(!strstr(place, "/holtd.abcdefghij0123456789/"));
	free(place);
	free(text);
	return 0;
}
