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
