/* CPython 3.11: the exception in flight is three objects. */
#include "cpython_dict.h"
#include "cpython_dict_version.h"
#include "cpython_no_watchers.h"
#include "cpython_until_312.h"

PyObject *
cpython_take_exception(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type == NULL) {
        return NULL;
    }
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(value, traceback);
        Py_DECREF(traceback);
    }
    Py_DECREF(type);
    return value;
}

void
cpython_raise(PyObject *exception)
{
    PyErr_Restore(Py_NewRef(Py_TYPE(exception)), exception, PyException_GetTraceback(exception));
}

/* Objects/rangeobject.c */
typedef struct {
    PyObject_HEAD
    long index;
    long start;
    long step;
    long len;
} RangeIterator;

int
cpython_range_peek(PyObject *iterator, long *number)
{
    RangeIterator *range = (RangeIterator *)iterator;
    *number = (long)((unsigned long)range->start + (unsigned long)range->index * (unsigned long)range->step);
    return range->index < range->len;
}
