/* The interpreter's C API as found in the running process. Only functions that are the same in
 * every supported version, so one build of this file serves all of them. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct err;
struct py_object; /* opaque: reference-counted by the interpreter */

struct py_status { /* PyStatus */
	int type;  /* 0: fine */
	const char *func;
	const char *text;
	int exit_code;
};

struct py_flags { /* PyCompilerFlags */
	int flags;
	int feature_version;
};

#define PY_FILE_INPUT 257
#define PY_IGNORE_COOKIE 0x0800
#define PY_SLOT_DEL 53
#define PY_SLOT_FINALIZE 80

struct symbols {
	const char *(*get_version)(void);
	void (*config_init)(void *config);
	struct py_status (*config_set_argv)(void *config, ssize_t argc, char *const *argv);
	void (*config_clear)(void *config);
	struct py_status (*initialize)(const void *config);
	int (*finalize)(void);
	void (*before_fork)(void);
	void (*after_fork_parent)(void);
	void (*after_fork_child)(void);
	struct py_object *(*run_string)(const char *code, int start, struct py_object *globals,
					struct py_object *locals, struct py_flags *flags);
	struct py_object *(*compile)(const char *code, const char *file, int start,
				     struct py_flags *flags, int optimize);
	struct py_object *(*eval_code)(struct py_object *code, struct py_object *globals,
				       struct py_object *locals);
	struct py_object *(*add_module)(const char *name);
	struct py_object *(*import_module)(const char *name);
	struct py_object *(*get_module_dict)(void);
	struct py_object *(*module_dict)(struct py_object *module);
	struct py_object *(*get_builtins)(void);
	struct py_object *(*sys_get)(const char *name);
	int (*sys_set)(const char *name, struct py_object *value);
	struct py_object *(*dict_new)(void);
	struct py_object *(*dict_get)(struct py_object *dict, const char *key);
	int (*dict_set)(struct py_object *dict, const char *key, struct py_object *value);
	int (*dict_del)(struct py_object *dict, const char *key);
	void (*dict_clear)(struct py_object *dict);
	struct py_object *(*dict_set_default)(struct py_object *dict, struct py_object *key,
					      struct py_object *value);
	struct py_object *(*list_new)(ssize_t n);
	int (*list_append)(struct py_object *list, struct py_object *item);
	ssize_t (*list_size)(struct py_object *list);
	struct py_object *(*list_get)(struct py_object *list, ssize_t i);
	struct py_object *(*bytes_new)(const char *data, ssize_t n);
	struct py_object *(*text_new)(const char *data);
	struct py_object *(*path_new)(const char *data); /* decoded as a file name is */
	const char *(*text_get)(struct py_object *text);
	struct py_object *(*long_new)(long v);
	long (*long_get)(struct py_object *o);
	struct py_object *(*get_attr)(struct py_object *o, const char *name);
	struct py_object *(*call)(struct py_object *function, ...);
	int (*is_true)(struct py_object *o);
	struct py_object *(*type_of)(struct py_object *o);
	int (*type_is_subtype)(struct py_object *a, struct py_object *b);
	void *(*type_slot)(struct py_object *type, int slot);
	struct py_object *(*err_occurred)(void);
	void (*err_print)(void);
	void (*err_clear)(void);
	int (*err_matches)(struct py_object *type);
	void (*err_fetch)(struct py_object **type, struct py_object **value,
			  struct py_object **traceback);
	void (*err_restore)(struct py_object *type, struct py_object *value,
			    struct py_object *traceback);
	void (*decref)(struct py_object *o);
	struct py_object **keyboard_interrupt; /* PyExc_KeyboardInterrupt */
	struct py_object **system_exit;        /* PyExc_SystemExit */
	struct py_object *type_type;           /* PyType_Type */
	struct py_object *module_type;         /* PyModule_Type */
	struct py_object *none;                /* Py_None */
	int minor;                             /* of version 3 */
};

/* -ENOEXEC when the program is not a Python, or not one that we know. */
int symbols_load(struct symbols *ret, struct err *err);
