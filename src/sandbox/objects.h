/* Named things that outlive sandboxes (pools, snapshots, templates, volumes): one table for each
 * kind, all of it in memory, each change in the store before it can be seen. What a kind keeps of
 * its own is a JSON text, and a struct that it makes of it.
 *
 * Callbacks come from the store's, or from inside the call when that is refused at once: such a
 * call is the last thing that a function does. An object is borrowed for the turn of the loop:
 * who waits in between keeps its id. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"
#include "base/list.h"

struct objects; /* opaque */
struct sandboxes;

enum object_set {
	OBJECTS_POOL,
	OBJECTS_SNAPSHOT,
	OBJECTS_VOLUME,
	OBJECTS_TEMPLATE,
	OBJECTS_ALIAS,
	OBJECTS_BUILD,       /* build.h */
	OBJECTS_BUILD_FILE,  /* build_files.h */
	OBJECTS_BUILD_LAYER, /* build_cache.h */
	OBJECTS_WEBHOOK,
	OBJECTS_SECRET,     /* vault.h */
	OBJECTS_SESSION,    /* session.h */
	OBJECTS_CREDENTIAL, /* credential.h */
	OBJECTS_COUNT
};
struct objects *sandboxes_objects(struct sandboxes *all, enum object_set set);

#define OBJECT_NAME_MAX 128
#define OBJECT_OWNER_MAX 63
#define OBJECT_TEXT_MAX (1u << 20)

struct object {
	struct list node;
	char id[ID_LEN + 1], owner[OBJECT_OWNER_MAX + 1];
	char name[OBJECT_NAME_MAX + 1]; /* "": none; unique among the owner's */
	uint32_t state;                 /* the kind's own */
	char *text;                     /* owned: JSON */
	void *data;                     /* owned: what the kind has made of the text */
	const void *more;               /* borrowed: what whoever serves it knows beside; NULL */
	int64_t created_ms, updated_ms;
	bool is_new;      /* the store has not taken it yet: only its name counts */
	bool is_writing;  /* a change is on its way: another one has to wait */
	bool is_unwanted; /* goes as soon as nothing of it is on its way */
};

struct object_kind {
	const char *name; /* in the store */
	const char *noun; /* for people: "snapshot" */
	size_t max;       /* of all owners together */
	size_t owner_max; /* of one */
	/* 0, -EINVAL, -ENOMEM. */
	int (*parse)(const char *text, void **ret);
	void (*free)(void *data);
	/* What follows from it. Before: NULL when it is new or was just loaded; now: NULL when it
	 * was removed. May be NULL itself. */
	void (*changed)(struct sandboxes *all, void *before, void *now);
	/* What its events are called ("volume": volume.created, .updated, .deleted); NULL: its
	 * changes are nobody's news. */
	const char *event;
	/* Whether, in that state, it is there for others; NULL: always. */
	bool (*is_there)(uint32_t state);
	/* What it takes of its owner's disk: counted in their quota from the moment that it is
	 * asked for, and in their usage while it is there. NULL: nothing. */
	uint64_t (*bytes)(const void *data);
};

/* Reads all there are; blocks. What cannot be read any more is left out, and said to the log. */
int objects_create(struct sandboxes *all, const struct object_kind *kind, struct objects **ret,
		   struct err *err);
struct objects *objects_free(struct objects *t); /* takes NULL, returns NULL */

/* By id or by name; NULL. owner NULL: anybody's, by id alone. */
struct object *objects_find(struct objects *t, const char *id_or_name, const char *owner);
struct object *objects_by_name(struct objects *t, const char *owner, const char *name);

struct object_filter {
	const char *owner; /* NULL: anybody's */
	const char *also;  /* the objects of this owner, too; NULL */
	int64_t before_ms; /* cursor: created before this, or then with a smaller id; 0: newest */
	const char *before_id;
};
/* Up to cap of them, newest first; the number, and whether there are others behind. */
size_t objects_list(const struct objects *t, const struct object_filter *f, struct object **ret,
		    size_t cap, bool *ret_more);
/* The first for which is_it() holds, of all; NULL. */
struct object *objects_search(struct objects *t,
			      bool (*is_it)(const struct object *o, const void *arg),
			      const void *arg);
/* Also those that the store has not taken yet. */
struct object *objects_search_all(struct objects *t,
				  bool (*is_it)(const struct object *o, const void *arg),
				  const void *arg);
void objects_each(struct objects *t, void (*each)(void *user, struct object *o), void *user);

/* err NULL: done. o is NULL after a failure, and after a removal. */
typedef void (*object_cb)(void *user, struct object *o, const struct err *err);

struct object_put {     /* borrowed for the call */
	const char *id; /* of a new one, NULL: makes one up. Else the one that is changed */
	const char *owner, *name;
	uint32_t state;
	const char *text;
};
/* EEXIST (the name), EDQUOT (too many), EINVAL (the kind does not take the text), QUOTA_ERRNO (its
 * owner's disk), and the store's. */
void objects_add(struct objects *t, const struct object_put *put, object_cb cb, void *user);
/* Replaces state and text, owner and name stay. ENOENT, EBUSY (another change is on its way). */
void objects_change(struct objects *t, const char *id, uint32_t state, const char *text,
		    object_cb cb, void *user);
/* ENOENT, EBUSY. */
void objects_remove(struct objects *t, const char *id, object_cb cb, void *user);
/* All of an owner's, also those on their way. What cannot be removed is said to the log. */
void objects_end_owner(struct objects *t, const char *owner);
