/* dynacore._C: the module. */
#include "core.h"
#include "cpython.h"
#include "torch_memory.h"
#include "watch.h"

/* ---- UNBOUND and NULL ---- */

typedef struct {
    PyObject_HEAD
    const char *name;
} Sentinel;

static PyObject *
sentinel_repr(Sentinel *sentinel)
{
    return PyUnicode_FromString(sentinel->name);
}

PyTypeObject Sentinel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacore._C.Sentinel",
    .tp_doc = "what stands in a state for a slot without an object",
    .tp_basicsize = sizeof(Sentinel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_repr = (reprfunc)sentinel_repr,
    .tp_str = (reprfunc)sentinel_repr,
};

/* Made once for the process, like the types. */
static Sentinel sentinels[] = {
    {PyObject_HEAD_INIT(&Sentinel_Type) "UNBOUND"},
    {PyObject_HEAD_INIT(&Sentinel_Type) "NULL"},
};

/* ---- functions ---- */

static PyObject *
module_set_handled_exception(PyObject *module, PyObject *exception)
{
    (void)module;
    if (exception != Py_None && !PyExceptionInstance_Check(exception)) {
        return PyErr_Format(PyExc_TypeError, "an exception or None is needed, not %.100s", Py_TYPE(exception)->tp_name);
    }
    PyObject *previous = cpython_swap_handled_exception(exception != Py_None ? Py_NewRef(exception) : NULL);
    return previous != NULL ? previous : Py_NewRef(Py_None);
}

static PyObject *
module_disable_depth(PyObject *module, PyObject *change)
{
    (void)module;
    long step = PyLong_AsLong(change);
    if (step == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (step < -1 || step > 1 || disable_depth + step < 0) {
        return PyErr_Format(PyExc_ValueError, "depth %d can't change by %ld", disable_depth, step);
    }
    disable_depth += (int)step;
    return PyLong_FromLong(disable_depth);
}

static PyObject *
module_attribute_slots(PyObject *module, PyObject *type)
{
    (void)module;
    if (!PyType_Check(type)) {
        return PyErr_Format(PyExc_TypeError, "a type is needed, not %.100s", Py_TYPE(type)->tp_name);
    }
    PyTypeObject *t = (PyTypeObject *)type;
    return Py_BuildValue("(OO)", t->tp_getattro == PyObject_GenericGetAttr ? Py_True : Py_False,
                         t->tp_setattro == PyObject_GenericSetAttr ? Py_True : Py_False);
}

static PyMethodDef module_methods[] = {
    {"resume", (PyCFunction)(void (*)(void))module_resume, METH_FASTCALL,
     "resume(frames, value): a continuation whose innermost frame gets `value` on its stack"},
    {"resume_raise", (PyCFunction)(void (*)(void))module_resume_raise, METH_FASTCALL,
     "resume_raise(frames, exc): a continuation that raises `exc` into the frames"},
    {"set_handled_exception", module_set_handled_exception, METH_O,
     "set_handled_exception(exc or None) -> the previous one: what sys.exc_info() sees"},
    {"disable_depth", module_disable_depth, METH_O,
     "disable_depth(+1, -1 or 0) -> depth: above 0, this thread calls compiled functions as they are"},
    {"peek", module_peek, METH_O,
     "peek(iterator) -> the item that comes next; IndexError at the end. For iterators over lists, tuples and ranges"},
    {"attribute_slots", module_attribute_slots, METH_O,
     "attribute_slots(type) -> (reads, writes): whether attributes are accessed by the generic algorithm"},
    {"set_tensor_layout", module_set_tensor_layout, METH_O, "where a tensor's metadata lie, as dynacore.torch_memory found"},
    {"set_state_readers", module_set_state_readers, METH_O, "how torch's state is read, as dynacore.torch_memory found"},
    {"tensor_words", module_tensor_words, METH_O, "tensor_words(tensor) -> what is read of its metadata, or None"},
    {"state_words", module_state_words, METH_NOARGS, "state_words() -> what is read of torch's state, or None"},
    {"set_watchable", module_set_watchable, METH_O,
     "set_watchable((dicts, instances, types, functions)): what this interpreter tells about when it changes"},
    {"watchable", module_watchable, METH_NOARGS, "watchable() -> what set_watchable() got"},
    {"watched", module_watched, METH_NOARGS, "watched() -> how many dicts, types and functions are watched now"},
    {NULL, NULL, 0, NULL},
};

/* ---- import ---- */

/* What this interpreter lets the guards remember. */
static int
add_capabilities(PyObject *module)
{
    const Capabilities *found = &cpython_capabilities;
    PyObject *capabilities = Py_BuildValue(
        "{s:N,s:N,s:N}", "dict_versions", PyBool_FromLong(found->dict_versions), "instance_dict_versions",
        PyBool_FromLong(found->instance_dict_versions), "type_versions", PyBool_FromLong(found->type_versions));
    int result = capabilities != NULL ? PyModule_AddObjectRef(module, "capabilities", capabilities) : -1;
    Py_XDECREF(capabilities);
    return result;
}

static int
refuse(const char *why)
{
    PyErr_SetString(PyExc_ImportError, why);
    return -1;
}

/* Types, sentinels and the depth of each thread exist once for the process, and rely on its one lock. */
static int
check_interpreter(void)
{
#ifdef Py_GIL_DISABLED
    return refuse("dynacore doesn't support free-threaded builds of CPython: use one with the global interpreter lock");
#else
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        return refuse("dynacore works in the main interpreter only, not in subinterpreters");
    }
    return cpython_self_check();
#endif
}

static int
module_exec(PyObject *module)
{
    PyTypeObject *public_types[] = {&Guards_Type, &Entry_Type, &Point_Type, &Continuation_Type, &Compiled_Type,
                                    &Watch_Type};
    if (check_interpreter() < 0 || cpython_probe() < 0 || add_capabilities(module) < 0 ||
        PyType_Ready(&Sentinel_Type) < 0) {
        return -1;
    }
    for (size_t i = 0; i < Py_ARRAY_LENGTH(public_types); i++) {
        if (PyModule_AddType(module, public_types[i]) < 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < Py_ARRAY_LENGTH(sentinels); i++) {
        if (PyModule_AddObjectRef(module, sentinels[i].name, (PyObject *)&sentinels[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dynacore._C",
    .m_doc = "Points, entries, guards and the trampoline: what runs on every call.",
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC
PyInit__C(void)
{
    return PyModuleDef_Init(&module_definition);
}
