#include "warm/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "spec/warm.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define AT(member) offsetof(struct symbols, member)

static const struct {
	const char *name;
	size_t at;
} table[] = {
	{ "Py_GetVersion", AT(get_version) },
	{ "PyConfig_InitPythonConfig", AT(config_init) },
	{ "PyConfig_SetBytesArgv", AT(config_set_argv) },
	{ "PyConfig_Clear", AT(config_clear) },
	{ "Py_InitializeFromConfig", AT(initialize) },
	{ "Py_FinalizeEx", AT(finalize) },
	{ "PyOS_BeforeFork", AT(before_fork) },
	{ "PyOS_AfterFork_Parent", AT(after_fork_parent) },
	{ "PyOS_AfterFork_Child", AT(after_fork_child) },
	{ "PyRun_StringFlags", AT(run_string) },
	{ "Py_CompileStringExFlags", AT(compile) },
	{ "PyEval_EvalCode", AT(eval_code) },
	{ "PyImport_AddModule", AT(add_module) },
	{ "PyImport_ImportModule", AT(import_module) },
	{ "PyImport_GetModuleDict", AT(get_module_dict) },
	{ "PyModule_GetDict", AT(module_dict) },
	{ "PyEval_GetBuiltins", AT(get_builtins) },
	{ "PySys_GetObject", AT(sys_get) },
	{ "PySys_SetObject", AT(sys_set) },
	{ "PyDict_New", AT(dict_new) },
	{ "PyDict_GetItemString", AT(dict_get) },
	{ "PyDict_SetItemString", AT(dict_set) },
	{ "PyDict_DelItemString", AT(dict_del) },
	{ "PyDict_Clear", AT(dict_clear) },
	{ "PyDict_SetDefault", AT(dict_set_default) },
	{ "PyList_New", AT(list_new) },
	{ "PyList_Append", AT(list_append) },
	{ "PyList_Size", AT(list_size) },
	{ "PyList_GetItem", AT(list_get) },
	{ "PyBytes_FromStringAndSize", AT(bytes_new) },
	{ "PyUnicode_FromString", AT(text_new) },
	{ "PyUnicode_DecodeFSDefault", AT(path_new) },
	{ "PyUnicode_AsUTF8", AT(text_get) },
	{ "PyLong_FromLong", AT(long_new) },
	{ "PyLong_AsLong", AT(long_get) },
	{ "PyObject_GetAttrString", AT(get_attr) },
	{ "PyObject_CallFunctionObjArgs", AT(call) },
	{ "PyObject_IsTrue", AT(is_true) },
	{ "PyObject_Type", AT(type_of) },
	{ "PyType_IsSubtype", AT(type_is_subtype) },
	{ "PyType_GetSlot", AT(type_slot) },
	{ "PyErr_Occurred", AT(err_occurred) },
	{ "PyErr_Print", AT(err_print) },
	{ "PyErr_Clear", AT(err_clear) },
	{ "PyErr_ExceptionMatches", AT(err_matches) },
	{ "PyErr_Fetch", AT(err_fetch) },
	{ "PyErr_Restore", AT(err_restore) },
	{ "Py_DecRef", AT(decref) },
	{ "PyExc_KeyboardInterrupt", AT(keyboard_interrupt) },
	{ "PyExc_SystemExit", AT(system_exit) },
	{ "PyType_Type", AT(type_type) },
	{ "PyModule_Type", AT(module_type) },
	{ "_Py_NoneStruct", AT(none) },
};

/* "3.11.2 (main, ...)": the number behind the first dot. */
static int parse_minor(const char *version, int *ret)
{
	struct str rest = str_of(version), part;
	char digits[8];
	uint32_t minor;

	if (!str_split(&rest, '.', &part) || !str_is(part, "3") || !str_split(&rest, '.', &part))
		return -EINVAL;
	if (part.len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, part.data, part.len);
	digits[part.len] = '\0';
	if (parse_u32(digits, 0, 99, &minor) < 0)
		return -EINVAL;
	*ret = (int)minor;
	return 0;
}

int symbols_load(struct symbols *ret, struct err *err)
{
	for (size_t i = 0; i < COUNT(table); i++) {
		void *found = dlsym(RTLD_DEFAULT, table[i].name);

		if (!found)
			return err_set(err, ENOEXEC, "the template's python3 has no %s",
				       table[i].name);
		memcpy((char *)ret + table[i].at, &found, sizeof(found));
	}
	if (parse_minor(ret->get_version(), &ret->minor) < 0 || ret->minor < WARM_PYTHON_MIN ||
	    ret->minor > WARM_PYTHON_MAX)
		return err_set(err, ENOEXEC, "Python %.20s is not known to be forkable",
			       ret->get_version());
	return 0;
}
