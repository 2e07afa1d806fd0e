/* CPython 3.12: the exception in flight is one object. */
#include "cpython_split_dict.h"

PyObject *
cpython_take_exception(void)
{
    return PyErr_GetRaisedException();
}

void
cpython_raise(PyObject *exception)
{
    PyErr_SetRaisedException(exception);
}

/* Include/internal/pycore_range.h */
typedef struct {
    PyObject_HEAD
    long start;
    long step;
    long len;
} RangeIterator;

int
cpython_range_peek(PyObject *iterator, long *number)
{
    RangeIterator *range = (RangeIterator *)iterator;
    *number = range->start;
    return range->len > 0;
}
