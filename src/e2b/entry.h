/* Files as E2B's clients see them. */
#pragma once

#include "spec/guest.h"

struct jw;

#define ENTRY_PERMISSIONS_SIZE 24
#define ENTRY_METADATA "e2b." /* attributes that are metadata begin so */

/* "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx", "dtrwxrwxrwx". */
void entry_permissions(uint32_t mode, char ret[ENTRY_PERMISSIONS_SIZE]);
#define ENTRY_TIME_SIZE 32
/* "2026-01-02T03:04:05.000000006Z" */
void entry_time(uint64_t mtime_ns, char ret[ENTRY_TIME_SIZE]);
const char *entry_name(const char *path); /* its last part, of a whole and clean path; "/" itself */

/* The members of EntryInfo, of an entry with details; an object has been begun. */
void entry_json(struct jw *w, const struct guest_entry *e);
/* "metadata": {...}, unless there is none. */
void entry_metadata_json(struct jw *w, const struct guest_entry *e);
/* What has happened to one, as an object {"name":..., "type":...[, "entry":{...}]}; entry may be
 * NULL. */
void entry_event_json(struct jw *w, enum guest_event event, const char *path,
		      const struct guest_entry *entry);
