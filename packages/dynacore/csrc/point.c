/* Point, Entry and Continuation: plain containers. trampoline.c runs them. */
#include "core.h"
#include <stddef.h>
#include <structmember.h>

/* ---- Entry ---- */

static PyObject *
entry_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"guards", "fn", "boxed", "data", NULL};
    PyObject *guards, *fn, *data = Py_None;
    int boxed = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|$pO:Entry", names, &Guards_Type, &guards, &fn, &boxed, &data)) {
        return NULL;
    }
    if (!PyCallable_Check(fn)) {
        return PyErr_Format(PyExc_TypeError, "fn must be callable, not %.100s", Py_TYPE(fn)->tp_name);
    }
    Entry *entry = (Entry *)type->tp_alloc(type, 0);
    if (entry != NULL) {
        entry->guards = (Guards *)Py_NewRef(guards);
        entry->fn = Py_NewRef(fn);
        entry->data = Py_NewRef(data);
        entry->boxed = boxed;
        entry->valid = 1;
    }
    return (PyObject *)entry;
}

static int
entry_traverse(Entry *entry, visitproc visit, void *arg)
{
    Py_VISIT(entry->guards);
    Py_VISIT(entry->fn);
    Py_VISIT(entry->data);
    return 0;
}

/* A call may still find the entry: guards and fn stay. Their own cycles are broken in what they refer to. */
static int
entry_clear(Entry *entry)
{
    Py_CLEAR(entry->data);
    return 0;
}

static void
entry_dealloc(Entry *entry)
{
    PyObject_GC_UnTrack(entry);
    if (entry->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)entry);
    }
    Py_CLEAR(entry->guards);
    Py_CLEAR(entry->fn);
    Py_CLEAR(entry->data);
    Py_TYPE(entry)->tp_free(entry);
}

static PyMemberDef entry_members[] = {
    {"guards", T_OBJECT, offsetof(Entry, guards), READONLY, "what must hold"},
    {"fn", T_OBJECT, offsetof(Entry, fn), READONLY, "called with the handed objects"},
    {"data", T_OBJECT, offsetof(Entry, data), 0, "free for Python"},
    {"hits", T_PYSSIZET, offsetof(Entry, hits), 0, "how often the entry was run"},
    {"valid", T_BOOL, offsetof(Entry, valid), 0, "False: never run again"},
    {"boxed", T_BOOL, offsetof(Entry, boxed), READONLY, "whether fn gets one list"},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Entry, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject Entry_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacore._C.Entry",
    .tp_doc = "Entry(guards, fn, *, boxed=False, data=None): guards and the function that they protect",
    .tp_basicsize = sizeof(Entry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = entry_new,
    .tp_traverse = (traverseproc)entry_traverse,
    .tp_clear = (inquiry)entry_clear,
    .tp_dealloc = (destructor)entry_dealloc,
    .tp_weaklistoffset = offsetof(Entry, weakrefs),
    .tp_members = entry_members,
};

/* ---- Point ---- */

static PyObject *
point_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"miss", "fallback", "code", "line", "data", NULL};
    PyObject *miss, *fallback, *code = Py_None, *data = Py_None;
    int line = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$OiO:Point", names, &miss, &fallback, &code, &line, &data)) {
        return NULL;
    }
    if (miss != Py_None && !PyCallable_Check(miss)) {
        return PyErr_Format(PyExc_TypeError, "miss must be callable or None, not %.100s", Py_TYPE(miss)->tp_name);
    }
    if (!PyCallable_Check(fallback)) {
        return PyErr_Format(PyExc_TypeError, "fallback must be callable, not %.100s", Py_TYPE(fallback)->tp_name);
    }
    if (code != Py_None && !PyCode_Check(code)) {
        return PyErr_Format(PyExc_TypeError, "code must be a code object, not %.100s", Py_TYPE(code)->tp_name);
    }
    Point *point = (Point *)type->tp_alloc(type, 0);
    if (point != NULL) {
        point->miss = Py_NewRef(miss);
        point->fallback = Py_NewRef(fallback);
        point->code = Py_NewRef(code);
        point->data = Py_NewRef(data);
        point->line = line;
        point->handled = -1;
        point->visible = 1;
        point->handlers = PyTuple_New(0);
        point->entries = PyTuple_New(0);
    }
    return (PyObject *)point;
}

static int
point_traverse(Point *point, visitproc visit, void *arg)
{
    Py_VISIT(point->miss);
    Py_VISIT(point->fallback);
    Py_VISIT(point->code);
    Py_VISIT(point->data);
    Py_VISIT(point->handlers);
    Py_VISIT(point->entries);
    return 0;
}

/* What a call relies on stays valid; miss and fallback are functions, which clear themselves. */
static int
point_clear(Point *point)
{
    Py_SETREF(point->handlers, PyTuple_New(0)); /* the empty tuple always exists */
    Py_SETREF(point->entries, PyTuple_New(0));
    Py_CLEAR(point->data);
    return 0;
}

static void
point_dealloc(Point *point)
{
    PyObject_GC_UnTrack(point);
    if (point->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)point);
    }
    Py_CLEAR(point->miss);
    Py_CLEAR(point->fallback);
    Py_CLEAR(point->code);
    Py_CLEAR(point->data);
    Py_CLEAR(point->handlers);
    Py_CLEAR(point->entries);
    Py_TYPE(point)->tp_free(point);
}

static PyObject *
point_add(Point *point, PyObject *entry)
{
    if (!Py_IS_TYPE(entry, &Entry_Type)) {
        return PyErr_Format(PyExc_TypeError, "an Entry is needed, not %.100s", Py_TYPE(entry)->tp_name);
    }
    Py_ssize_t n = PyTuple_GET_SIZE(point->entries);
    PyObject *entries = PyTuple_New(n + 1);
    if (entries == NULL) {
        return NULL;
    }
    PyTuple_SET_ITEM(entries, 0, Py_NewRef(entry));
    point->last = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTuple_SET_ITEM(entries, i + 1, Py_NewRef(PyTuple_GET_ITEM(point->entries, i)));
    }
    Py_SETREF(point->entries, entries);
    Py_RETURN_NONE;
}

static PyObject *
point_remove(Point *point, PyObject *entry)
{
    PyObject *kept = PyList_New(0);
    if (kept == NULL) {
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(point->entries);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *other = PyTuple_GET_ITEM(point->entries, i);
        if (other != entry && PyList_Append(kept, other) < 0) {
            Py_DECREF(kept);
            return NULL;
        }
    }
    int removed = PyList_GET_SIZE(kept) < n;
    PyObject *entries = PyList_AsTuple(kept);
    Py_DECREF(kept);
    if (entries == NULL) {
        return NULL;
    }
    Py_SETREF(point->entries, entries);
    return PyBool_FromLong(removed);
}

static PyObject *
point_clear_entries(Point *point, PyObject *unused)
{
    (void)unused;
    PyObject *entries = PyTuple_New(0);
    if (entries == NULL) {
        return NULL;
    }
    Py_SETREF(point->entries, entries);
    Py_RETURN_NONE;
}

static int
is_handler(PyObject *handler)
{
    if (!PyTuple_Check(handler) || PyTuple_GET_SIZE(handler) != 5) {
        return 0;
    }
    PyObject *keep = PyTuple_GET_ITEM(handler, 2), *lasti = PyTuple_GET_ITEM(handler, 4);
    return Py_IS_TYPE(PyTuple_GET_ITEM(handler, 1), &Point_Type) && PyLong_Check(keep) &&
           PyLong_AsSsize_t(keep) >= 0 && PyBool_Check(PyTuple_GET_ITEM(handler, 3)) &&
           (lasti == Py_None || PyLong_Check(lasti));
}

static int
point_set_handlers(Point *point, PyObject *handlers, void *closure)
{
    (void)closure;
    int good = handlers != NULL && PyTuple_Check(handlers);
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(handlers); i++) {
        good = is_handler(PyTuple_GET_ITEM(handlers, i));
    }
    if (!good) {
        PyErr_SetString(PyExc_TypeError,
                        "handlers must be a tuple of (exception class, Point, keep, push_exc, lasti or None)");
        return -1;
    }
    Py_SETREF(point->handlers, Py_NewRef(handlers));
    return 0;
}

static PyObject *
point_get_handlers(Point *point, void *closure)
{
    (void)closure;
    return Py_NewRef(point->handlers);
}

static PyMethodDef point_methods[] = {
    {"add", (PyCFunction)point_add, METH_O, "add(entry): put it before the others"},
    {"remove", (PyCFunction)point_remove, METH_O, "remove(entry) -> whether it was there"},
    {"clear", (PyCFunction)point_clear_entries, METH_NOARGS, "clear(): remove all entries"},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef point_members[] = {
    {"miss", T_OBJECT, offsetof(Point, miss), READONLY, "miss(point, state) -> Entry or None"},
    {"fallback", T_OBJECT, offsetof(Point, fallback), READONLY, "fallback(state) -> what runs the rest of the frame"},
    {"code", T_OBJECT, offsetof(Point, code), READONLY, "the code object that the point lies in"},
    {"line", T_INT, offsetof(Point, line), 0, "line for tracebacks"},
    {"handled", T_INT, offsetof(Point, handled), 0, "index in a state of the exception being handled, -1: none"},
    {"data", T_OBJECT, offsetof(Point, data), 0, "free for Python"},
    {"entries", T_OBJECT, offsetof(Point, entries), READONLY, "tuple of the entries, newest first"},
    {"visible", T_BOOL, offsetof(Point, visible), 0, "whether tracebacks show a frame that waits here"},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Point, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef point_getset[] = {
    {"handlers", (getter)point_get_handlers, (setter)point_set_handlers,
     "tuple of (exception class, Point, keep, push_exc, lasti), tried in order", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Point_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacore._C.Point",
    .tp_doc = "Point(miss, fallback, *, code=None, line=0, data=None): a place where execution can be entered",
    .tp_basicsize = sizeof(Point),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = point_new,
    .tp_traverse = (traverseproc)point_traverse,
    .tp_clear = (inquiry)point_clear,
    .tp_dealloc = (destructor)point_dealloc,
    .tp_weaklistoffset = offsetof(Point, weakrefs),
    .tp_methods = point_methods,
    .tp_members = point_members,
    .tp_getset = point_getset,
};
