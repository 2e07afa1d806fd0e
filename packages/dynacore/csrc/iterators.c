/* What comes next from iterators over lists, tuples and ranges, without taking it. */
#include "core.h"
#include "cpython.h"

static PyObject *
sequence_item(SequenceIterator *iterator)
{
    PyObject *sequence = iterator->sequence;
    if (sequence == NULL || iterator->index >= PySequence_Fast_GET_SIZE(sequence)) {
        return NULL;
    }
    return Py_NewRef(PySequence_Fast_GET_ITEM(sequence, iterator->index));
}

PyObject *
module_peek(PyObject *module, PyObject *iterator)
{
    (void)module;
    PyObject *item = NULL;
    long number;
    if (Py_IS_TYPE(iterator, &PyListIter_Type) || Py_IS_TYPE(iterator, &PyTupleIter_Type)) {
        item = sequence_item((SequenceIterator *)iterator);
    }
    else if (Py_IS_TYPE(iterator, &PyRangeIter_Type)) {
        if (cpython_range_peek(iterator, &number)) {
            item = PyLong_FromLong(number);
        }
    }
    else {
        return PyErr_Format(PyExc_TypeError, "an iterator over a list, tuple or range is needed, not %.100s",
                            Py_TYPE(iterator)->tp_name);
    }
    if (item == NULL && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_IndexError, "the iterator is at its end");
    }
    return item;
}
