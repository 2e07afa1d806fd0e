/* The objects of dynacore._C, as docs/design.md names them. */
#ifndef DYNACORE_CORE_H
#define DYNACORE_CORE_H

#include "guards.h"
#include <Python.h>

/* Guards and the function that they protect. */
typedef struct {
    PyObject_HEAD
    Guards *guards;
    PyObject *fn;
    PyObject *data;
    Py_ssize_t hits;
    char valid;
    char boxed;
    PyObject *weakrefs;
} Entry;

/* A place where execution can be entered. */
typedef struct {
    PyObject_HEAD
    PyObject *miss;
    PyObject *fallback;
    PyObject *code;
    PyObject *data;
    PyObject *handlers; /* tuple of (class, Point, keep, push_exc, lasti) */
    PyObject *entries;  /* tuple of Entry, newest first; replaced, never changed */
    Py_ssize_t last;    /* which of them took the last call */
    int line;    /* what a traceback shows */
    int handled; /* where in a state lies the exception that the frame is handling, -1: it handles none */
    char visible;
    PyObject *weakrefs;
} Point;

/* Frames still to run: what an entry returns instead of a value. */
typedef struct {
    PyObject_HEAD
    PyObject *frames;    /* list of (Point, state list), innermost first */
    PyObject *exception; /* to be raised into the frames, or NULL */
} Continuation;

extern PyTypeObject Point_Type, Entry_Type, Continuation_Type, Compiled_Type, Sentinel_Type;

/* Enters `point` with `state` and runs to the end, through every continuation. Takes the references of the state's
 * items: they are dropped before an entry's function runs. */
PyObject *trampoline_call(Point *point, State *state);

/* Adds a line for `point` to the exception's traceback, as CPython does for a frame that an exception arrives in. */
void traceback_add(PyObject *exception, const Point *point);

/* -1 with RecursionError when little C stack is left. */
int stack_check(void);

/* Above zero in this thread, a Compiled calls its function as it is. */
extern _Thread_local int disable_depth;

PyObject *module_resume(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *module_resume_raise(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

PyObject *module_peek(PyObject *module, PyObject *iterator);

#endif
