/* Traceback lines of frames that exist only as (Point, state). */
#include "core.h"
#include <frameobject.h>

static PyObject *
make_traceback(PyObject *next, const Point *point)
{
    PyObject *globals = PyDict_New();
    if (globals == NULL) {
        return NULL;
    }
    PyObject *traceback = NULL;
    PyFrameObject *frame = PyFrame_New(PyThreadState_Get(), (PyCodeObject *)point->code, globals, NULL);
    if (frame != NULL) {
        traceback = PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii", next != NULL ? next : Py_None, frame,
                                          point->lasti, point->line);
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
