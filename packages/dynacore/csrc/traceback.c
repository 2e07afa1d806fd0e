/* Traceback lines of frames that exist only as (Point, state). */
#include "core.h"
#include <frameobject.h>

/* A code object to show in place of the user's: a frame of that one, whose cells were never made, can't be looked into. */
static PyCodeObject *
make_code(const Point *point)
{
    PyCodeObject *code = (PyCodeObject *)point->code;
    const char *filename = PyUnicode_AsUTF8(code->co_filename), *name = PyUnicode_AsUTF8(code->co_name);
    return filename != NULL && name != NULL ? PyCode_NewEmpty(filename, name, point->line) : NULL;
}

static PyObject *
make_traceback(PyObject *next, const Point *point)
{
    PyObject *globals = PyDict_New();
    if (globals == NULL) {
        return NULL;
    }
    PyObject *traceback = NULL;
    PyCodeObject *code = make_code(point);
    PyFrameObject *frame = code != NULL ? PyFrame_New(PyThreadState_Get(), code, globals, NULL) : NULL;
    Py_XDECREF(code);
    if (frame != NULL) {
        traceback = PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii", next != NULL ? next : Py_None, frame, 0,
                                          point->line);
        Py_DECREF(frame);
    }
    Py_DECREF(globals);
    return traceback;
}

void
traceback_add(PyObject *exc, const Point *point)
{
    if (!point->visible || point->code == Py_None) {
        return;
    }
    PyObject *next = PyException_GetTraceback(exc);
    PyObject *traceback = make_traceback(next, point);
    if (traceback == NULL || PyException_SetTraceback(exc, traceback) < 0) {
        PyErr_Clear(); /* a line less in the traceback must not hide the exception */
    }
    Py_XDECREF(traceback);
    Py_XDECREF(next);
}
