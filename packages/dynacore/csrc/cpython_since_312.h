/* Since 3.12: the exception in flight is one object; an iterator over a range forgets where it began; dicts and types say
 * that they change. */
#include "cpython_watchers.h"
#include "internal/pycore_range.h"

typedef _PyRangeIterObject RangeIterator;

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

int
cpython_range_peek(PyObject *iterator, long *number)
{
    RangeIterator *range = (RangeIterator *)iterator;
    *number = range->start;
    return range->len > 0;
}
