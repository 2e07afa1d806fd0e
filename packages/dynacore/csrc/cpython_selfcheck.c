/* Whether the running interpreter's objects lie in memory as the headers said that this module was compiled with. Sizes are
 * compared first, then what is read in our way with what CPython's own functions say. */
#include "core.h"
#include "cpython.h"

/* Each check: 1, or 0 where something isn't as it should be, maybe with an exception. */

static int
release(void)
{
    return Py_Version >> 16 == PY_VERSION_HEX >> 16;
}

static int
sizes(void)
{
    const struct {
        const PyTypeObject *type;
        Py_ssize_t size;
    } known[] = {
        {&PyDict_Type, sizeof(PyDictObject)},
        {&PySet_Type, sizeof(PySetObject)},
        {&PyList_Type, sizeof(PyListObject)},
        {&PyType_Type, sizeof(PyHeapTypeObject)},
        {&PyFunction_Type, sizeof(PyFunctionObject)},
        {&PyMethod_Type, sizeof(PyMethodObject)},
        {&PyCell_Type, sizeof(PyCellObject)},
        {&PyListIter_Type, sizeof(SequenceIterator)},
        {&PyTupleIter_Type, sizeof(SequenceIterator)},
        {&PyRangeIter_Type, cpython_range_iterator_size},
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(known); i++) {
        if (known[i].type->tp_basicsize != known[i].size) {
            return 0;
        }
    }
    return 1;
}

static int
sequence_iterator(PyObject *sequence)
{
    PyObject *iterator = sequence != NULL ? PyObject_GetIter(sequence) : NULL;
    PyObject *item = iterator != NULL ? PyIter_Next(iterator) : NULL;
    const SequenceIterator *seen = (const SequenceIterator *)iterator;
    int good = item != NULL && seen->index == 1 && seen->sequence == sequence;
    Py_XDECREF(item);
    Py_XDECREF(iterator);
    Py_XDECREF(sequence);
    return good;
}

static int
list_iterators(void)
{
    return sequence_iterator(Py_BuildValue("[ii]", 1, 2));
}

static int
tuple_iterators(void)
{
    return sequence_iterator(Py_BuildValue("(ii)", 1, 2));
}

static int
range_iterators(void)
{
    PyObject *range = PyObject_CallFunction((PyObject *)&PyRange_Type, "iii", 3, 20, 7);
    PyObject *iterator = range != NULL ? PyObject_GetIter(range) : NULL;
    int good = iterator != NULL;
    for (long expected = 3, seen = 0; good && expected < 20; expected += 7) {
        good = cpython_range_peek(iterator, &seen) && seen == expected;
        Py_XDECREF(PyIter_Next(iterator));
    }
    long none;
    good = good && !cpython_range_peek(iterator, &none);
    Py_XDECREF(iterator);
    Py_XDECREF(range);
    return good;
}

/* Whether the words that hold an item end with one that holds its value. */
static int
item_words(PyObject *dict, PyObject *name, PyObject *value)
{
    Word words[CPYTHON_MAX_DICT_WORDS];
    int n = cpython_dict_value_words(dict, name, words);
    return n > 0 && words[n - 1].expected == (uintptr_t)value;
}

/* An object with a dict whose keys are shared with other objects' of its class. */
static PyObject *
make_instance(PyObject *name)
{
    PyObject *class = PyObject_CallFunction((PyObject *)&PyType_Type, "s(){}", "Class");
    PyObject *instance = class != NULL ? PyObject_CallNoArgs(class) : NULL;
    Py_XDECREF(class);
    if (instance != NULL && PyObject_SetAttr(instance, name, Py_None) < 0) {
        Py_CLEAR(instance);
    }
    return instance;
}

static int
dicts_of_instances(void)
{
    PyObject *name = PyUnicode_InternFromString("attribute");
    PyObject *instance = name != NULL ? make_instance(name) : NULL;
    PyObject *dict = instance != NULL ? PyObject_GenericGetDict(instance, NULL) : NULL;
    PyObject **slot = dict != NULL ? cpython_dict_slot(instance) : NULL;
    int good = slot != NULL && *slot == dict && item_words(dict, name, Py_None) &&
               PyObject_SetAttr(instance, name, Py_True) == 0 && item_words(dict, name, Py_True);
    Py_XDECREF(dict);
    Py_XDECREF(instance);
    Py_XDECREF(name);
    return good;
}

static int
dicts(void)
{
    PyObject *name = PyUnicode_InternFromString("attribute"), *dict = PyDict_New();
    int good = name != NULL && dict != NULL && PyDict_SetItem(dict, name, Py_None) == 0 &&
               ((PyDictObject *)dict)->ma_used == 1 && item_words(dict, name, Py_None) &&
               PyDict_SetItem(dict, name, Py_True) == 0 && item_words(dict, name, Py_True);
    Py_XDECREF(dict);
    Py_XDECREF(name);
    return good;
}

static int
exceptions(void)
{
    PyObject *exception = PyObject_CallNoArgs(PyExc_ValueError);
    if (exception == NULL) {
        return 0;
    }
    cpython_raise(Py_NewRef(exception));
    PyObject *taken = cpython_take_exception();
    PyObject *before = cpython_swap_handled_exception(Py_NewRef(exception));
    PyObject *seen = PyErr_GetHandledException();
    PyObject *handled = cpython_swap_handled_exception(before);
    int good = taken == exception && seen == exception && handled == exception;
    Py_XDECREF(taken);
    Py_XDECREF(seen);
    Py_XDECREF(handled);
    Py_DECREF(exception);
    return good;
}

static const struct {
    const char *what;
    int (*holds)(void);
} CHECKS[] = {
    {"another release runs", release},
    {"objects have other sizes", sizes},
    {"iterators over lists lie differently in memory", list_iterators},
    {"iterators over tuples lie differently in memory", tuple_iterators},
    {"iterators over ranges lie differently in memory", range_iterators},
    {"dicts lie differently in memory", dicts},
    {"instances keep their attributes differently", dicts_of_instances},
    {"exceptions are kept differently", exceptions},
};

int
cpython_self_check(void)
{
    for (size_t i = 0; i < Py_ARRAY_LENGTH(CHECKS); i++) {
        if (!CHECKS[i].holds()) {
            PyErr_Clear();
            PyErr_Format(PyExc_ImportError,
                         "dynacore._C was compiled for CPython %s and doesn't fit CPython %.20s: %s. "
                         "Build it with the headers of the interpreter that runs it; docs/porting.md has the details",
                         PY_VERSION, Py_GetVersion(), CHECKS[i].what);
            return -1;
        }
    }
    return 0;
}
