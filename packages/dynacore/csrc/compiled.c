/* Compiled: binds a call's arguments and enters its point. */
#include "compiled.h"
#include <stddef.h>
#include <string.h>
#include <structmember.h>

#define SMALL 16 /* arguments that fit on the C stack */

_Thread_local int disable_depth = 0;

static PyObject *
plain_function(PyObject *function)
{
    return PyMethod_Check(function) ? PyMethod_GET_FUNCTION(function) : function;
}

static int
must_call_plainly(const Compiled *compiled)
{
    return disable_depth > 0 ||
           (compiled->follows_code &&
            PyFunction_GET_CODE(plain_function(compiled->function)) != (PyObject *)compiled->signature.code);
}

/* A bound method's object becomes the first argument. Returns -1 without memory. */
static int
bind_call(Compiled *compiled, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **slots)
{
    if (!PyMethod_Check(compiled->function)) {
        return bind_arguments(compiled, args, nargs, kwnames, slots);
    }
    Py_ssize_t n = nargs + (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *small[SMALL + 1];
    PyObject **all = n <= SMALL ? small : PyMem_Malloc((n + 1) * sizeof(PyObject *));
    if (all == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    all[0] = PyMethod_GET_SELF(compiled->function);
    if (n > 0) {
        memcpy(all + 1, args, n * sizeof(PyObject *));
    }
    int bound = bind_arguments(compiled, all, nargs + 1, kwnames, slots);
    if (all != small) {
        PyMem_Free(all);
    }
    return bound;
}

static PyObject *
compiled_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Compiled *compiled = (Compiled *)self;
    if (must_call_plainly(compiled)) {
        return PyObject_Vectorcall(compiled->function, args, nargsf, kwnames);
    }
    PyObject *small[SMALL];
    int n = compiled->signature.n_slots;
    PyObject **slots = n <= SMALL ? small : PyMem_Malloc(n * sizeof(PyObject *));
    if (slots == NULL) {
        return PyErr_NoMemory();
    }
    memset(slots, 0, n * sizeof(PyObject *));
    State state = {slots, n, NULL};
    PyObject *result = NULL;
    int bound = bind_call(compiled, args, PyVectorcall_NARGS(nargsf), kwnames, slots);
    if (bound == 1) {
        result = trampoline_call(compiled->point, &state);
    }
    else {
        state_drop(&state);
        if (bound == 0) { /* the function itself says what is wrong */
            result = PyObject_Vectorcall(compiled->function, args, nargsf, kwnames);
        }
    }
    if (slots != small) {
        PyMem_Free(slots);
    }
    return result;
}

/* The code that arguments are bound for: the point's, or else the function's. Borrowed. */
static PyObject *
code_to_bind(PyObject *function, const Point *point)
{
    if (point->code != Py_None) {
        return point->code;
    }
    if (PyFunction_Check(plain_function(function))) {
        return PyFunction_GET_CODE(plain_function(function));
    }
    PyErr_Format(PyExc_TypeError, "%.100R has no code of its own: the point must have it", function);
    return NULL;
}

static PyObject *
compiled_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"function", "point", NULL};
    PyObject *function, *point;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!:Compiled", names, &function, &Point_Type, &point)) {
        return NULL;
    }
    if (!PyCallable_Check(function)) {
        return PyErr_Format(PyExc_TypeError, "function must be callable, not %.100s", Py_TYPE(function)->tp_name);
    }
    PyObject *code = code_to_bind(function, (Point *)point);
    if (code == NULL) {
        return NULL;
    }
    Compiled *compiled = (Compiled *)type->tp_alloc(type, 0);
    if (compiled == NULL) {
        return NULL;
    }
    compiled->vectorcall = compiled_vectorcall;
    compiled->function = Py_NewRef(function);
    compiled->point = (Point *)Py_NewRef(point);
    compiled->follows_code =
        PyFunction_Check(plain_function(function)) && PyFunction_GET_CODE(plain_function(function)) == code;
    compiled->dict = PyDict_New();
    if (signature_init(&compiled->signature, code) < 0 || compiled->dict == NULL ||
        PyDict_SetItemString(compiled->dict, "__wrapped__", function) < 0) {
        Py_CLEAR(compiled);
    }
    return (PyObject *)compiled;
}

static int
compiled_traverse(Compiled *compiled, visitproc visit, void *arg)
{
    Py_VISIT(compiled->function);
    Py_VISIT(compiled->point);
    Py_VISIT(compiled->signature.code);
    Py_VISIT(compiled->signature.names);
    Py_VISIT(compiled->kwnames);
    Py_VISIT(compiled->dict);
    return 0;
}

/* function and point stay, since a call may still come; cycles through them are broken in the point or the function. */
static int
compiled_clear(Compiled *compiled)
{
    Py_CLEAR(compiled->dict);
    return 0;
}

static void
compiled_dealloc(Compiled *compiled)
{
    PyObject_GC_UnTrack(compiled);
    if (compiled->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)compiled);
    }
    Py_CLEAR(compiled->function);
    Py_CLEAR(compiled->point);
    Py_CLEAR(compiled->signature.code);
    Py_CLEAR(compiled->signature.names);
    Py_CLEAR(compiled->kwnames);
    Py_CLEAR(compiled->dict);
    PyMem_Free(compiled->kwslots);
    Py_TYPE(compiled)->tp_free(compiled);
}

/* Binds where the function would: functions do, bound methods and most callable objects don't. */
static PyObject *
compiled_get(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    PyObject *function = ((Compiled *)self)->function;
    if (object == NULL || object == Py_None || PyMethod_Check(function) || Py_TYPE(function)->tp_descr_get == NULL) {
        return Py_NewRef(self);
    }
    return PyMethod_New(self, object);
}

static PyObject *
compiled_repr(Compiled *compiled)
{
    return PyUnicode_FromFormat("<compiled %R>", compiled->function);
}

/* Pickled by its qualified name and copied as itself, like a function. */
static PyObject *
compiled_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyMethodDef compiled_methods[] = {
    {"__reduce__", compiled_reduce, METH_NOARGS, "the qualified name"},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef compiled_members[] = {
    {"point", T_OBJECT, offsetof(Compiled, point), READONLY, "the point that a call enters"},
    {"__dictoffset__", T_PYSSIZET, offsetof(Compiled, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Compiled, weakrefs), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Compiled, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef compiled_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Compiled_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacore._C.Compiled",
    .tp_doc = "Compiled(function, point): binds arguments like `function` and enters `point`",
    .tp_basicsize = sizeof(Compiled),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = compiled_new,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Compiled, vectorcall),
    .tp_traverse = (traverseproc)compiled_traverse,
    .tp_clear = (inquiry)compiled_clear,
    .tp_dealloc = (destructor)compiled_dealloc,
    .tp_descr_get = compiled_get,
    .tp_repr = (reprfunc)compiled_repr,
    .tp_dictoffset = offsetof(Compiled, dict),
    .tp_weaklistoffset = offsetof(Compiled, weakrefs),
    .tp_methods = compiled_methods,
    .tp_members = compiled_members,
    .tp_getset = compiled_getset,
};
