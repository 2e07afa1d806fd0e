/* dynacore._C: the module. */
#include "core.h"
#include "cpython.h"

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

static int
add_sentinel(PyObject *module, const char *name)
{
    Sentinel *sentinel = PyObject_New(Sentinel, &Sentinel_Type);
    if (sentinel == NULL) {
        return -1;
    }
    sentinel->name = name;
    int result = PyModule_AddObjectRef(module, name, (PyObject *)sentinel);
    Py_DECREF(sentinel);
    return result;
}

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

/* What this interpreter lets the guards remember. */
static int
add_capabilities(PyObject *module)
{
    PyObject *dict = PyModule_GetDict(module);
    PyObject *name = PyUnicode_InternFromString("__name__");
    if (name == NULL) {
        return -1;
    }
    (void)_PyType_Lookup(Py_TYPE(dict), name); /* a look-up gives a type its version */
    Py_DECREF(name);
    PyObject *capabilities =
        Py_BuildValue("{s:O,s:O}", "dict_versions", cpython_dict_version(dict) != NULL ? Py_True : Py_False,
                      "type_versions", cpython_type_version(Py_TYPE(dict)) != NULL ? Py_True : Py_False);
    int result = capabilities != NULL ? PyModule_AddObjectRef(module, "capabilities", capabilities) : -1;
    Py_XDECREF(capabilities);
    return result;
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
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dynacore._C",
    .m_doc = "Points, entries, guards and the trampoline: what runs on every call.",
    .m_size = -1,
    .m_methods = module_methods,
};

PyMODINIT_FUNC
PyInit__C(void)
{
    PyTypeObject *public_types[] = {&Guards_Type, &Entry_Type, &Point_Type, &Continuation_Type, &Compiled_Type};
    PyObject *module = PyType_Ready(&Sentinel_Type) < 0 ? NULL : PyModule_Create(&module_definition);
    if (module == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < Py_ARRAY_LENGTH(public_types); i++) {
        if (PyModule_AddType(module, public_types[i]) < 0) {
            Py_DECREF(module);
            return NULL;
        }
    }
    if (add_sentinel(module, "UNBOUND") < 0 || add_sentinel(module, "NULL") < 0 || add_capabilities(module) < 0) {
        Py_CLEAR(module);
    }
    return module;
}
