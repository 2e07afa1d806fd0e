/* Continuation, and the functions that make one. */
#include "core.h"
#include <stddef.h>
#include <structmember.h>

static int
is_frame(PyObject *frame)
{
    return PyTuple_CheckExact(frame) && PyTuple_GET_SIZE(frame) == 2 &&
           Py_IS_TYPE(PyTuple_GET_ITEM(frame, 0), &Point_Type) && PyList_CheckExact(PyTuple_GET_ITEM(frame, 1));
}

/* A private copy: what the trampoline finds in it is what was verified here. */
static PyObject *
copy_frames(PyObject *frames)
{
    if (!PyList_CheckExact(frames)) {
        return PyErr_Format(PyExc_TypeError, "frames must be a list, not %.100s", Py_TYPE(frames)->tp_name);
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(frames); i++) {
        if (!is_frame(PyList_GET_ITEM(frames, i))) {
            return PyErr_Format(PyExc_TypeError, "a frame is (Point, state list), not %.100R", PyList_GET_ITEM(frames, i));
        }
    }
    return PyList_AsTuple(frames);
}

static PyObject *
make_continuation(PyTypeObject *type, PyObject *frames, PyObject *exception)
{
    PyObject *copy = copy_frames(frames);
    if (copy == NULL) {
        return NULL;
    }
    Continuation *continuation = (Continuation *)type->tp_alloc(type, 0);
    if (continuation == NULL) {
        Py_DECREF(copy);
        return NULL;
    }
    continuation->frames = copy;
    continuation->exception = Py_XNewRef(exception);
    return (PyObject *)continuation;
}

static PyObject *
continuation_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"frames", NULL};
    PyObject *frames;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Continuation", names, &frames)) {
        return NULL;
    }
    if (PyList_CheckExact(frames) && PyList_GET_SIZE(frames) == 0) {
        PyErr_SetString(PyExc_ValueError, "a continuation needs a frame to run");
        return NULL;
    }
    return make_continuation(type, frames, NULL);
}

PyObject *
module_resume(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs != 2) {
        return PyErr_Format(PyExc_TypeError, "resume() takes 2 arguments (%zd given)", nargs);
    }
    if (PyList_CheckExact(args[0]) && PyList_GET_SIZE(args[0]) == 0) {
        return Py_NewRef(args[1]); /* nobody waits: it is the result */
    }
    PyObject *continuation = make_continuation(&Continuation_Type, args[0], NULL);
    if (continuation != NULL) {
        PyObject *innermost = PyTuple_GET_ITEM(((Continuation *)continuation)->frames, 0);
        if (PyList_Append(PyTuple_GET_ITEM(innermost, 1), args[1]) < 0) {
            Py_CLEAR(continuation);
        }
    }
    return continuation;
}

PyObject *
module_resume_raise(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs != 2) {
        return PyErr_Format(PyExc_TypeError, "resume_raise() takes 2 arguments (%zd given)", nargs);
    }
    if (!PyExceptionInstance_Check(args[1])) {
        return PyErr_Format(PyExc_TypeError, "an exception is needed, not %.100s", Py_TYPE(args[1])->tp_name);
    }
    return make_continuation(&Continuation_Type, args[0], args[1]);
}

static int
continuation_traverse(Continuation *continuation, visitproc visit, void *arg)
{
    Py_VISIT(continuation->frames);
    Py_VISIT(continuation->exception);
    return 0;
}

static int
continuation_clear(Continuation *continuation)
{
    Py_CLEAR(continuation->frames);
    Py_CLEAR(continuation->exception);
    return 0;
}

static void
continuation_dealloc(Continuation *continuation)
{
    PyObject_GC_UnTrack(continuation);
    continuation_clear(continuation);
    Py_TYPE(continuation)->tp_free(continuation);
}

static PyMemberDef continuation_members[] = {
    {"frames", T_OBJECT, offsetof(Continuation, frames), READONLY, "tuple of (Point, state), innermost first"},
    {"exception", T_OBJECT, offsetof(Continuation, exception), READONLY, "raised into the frames, or None"},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject Continuation_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacore._C.Continuation",
    .tp_doc = "Continuation(frames): frames still to run, (Point, state list) each, innermost first",
    .tp_basicsize = sizeof(Continuation),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = continuation_new,
    .tp_traverse = (traverseproc)continuation_traverse,
    .tp_clear = (inquiry)continuation_clear,
    .tp_dealloc = (destructor)continuation_dealloc,
    .tp_members = continuation_members,
};
