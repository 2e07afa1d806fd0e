/* Checks: what must be true of one object. */
#include "guards.h"
#include <string.h>

static int
complex_equal(PyObject *left, PyObject *right)
{
    Py_complex a = ((PyComplexObject *)left)->cval, b = ((PyComplexObject *)right)->cval;
    return memcmp(&a, &b, sizeof a) == 0;
}

static int
tuples_equal(PyObject *left, PyObject *right)
{
    Py_ssize_t size = PyTuple_GET_SIZE(left);
    if (size != PyTuple_GET_SIZE(right)) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        if (!constants_equal(PyTuple_GET_ITEM(left, i), PyTuple_GET_ITEM(right, i))) {
            return 0;
        }
    }
    return 1;
}

/* Whether `holds` of each item of a set, which no other item is asked about once it doesn't. */
static int
all_items(PyObject *set, int (*holds)(PyObject *item, PyObject *other), PyObject *other)
{
    PyObject *items = PyObject_GetIter(set), *item;
    int all = items != NULL;
    while (all && (item = PyIter_Next(items)) != NULL) {
        all = holds(item, other) && !PyErr_Occurred();
        Py_DECREF(item);
    }
    Py_XDECREF(items);
    return all;
}

static int
is_other_constant(PyObject *item, PyObject *wanted)
{
    return !constants_equal(item, wanted);
}

static int
is_in(PyObject *wanted, PyObject *set)
{
    return !all_items(set, is_other_constant, wanted) && !PyErr_Occurred();
}

static int
frozensets_equal(PyObject *left, PyObject *right)
{
    return PySet_GET_SIZE(left) == PySet_GET_SIZE(right) && all_items(left, is_in, right);
}

/* Same exact type and same value; floats by their bits. Other types than constants are asked (`==`). */
int
constants_equal(PyObject *left, PyObject *right)
{
    if (left == right) {
        return 1;
    }
    if (Py_TYPE(left) != Py_TYPE(right)) {
        return 0;
    }
    if (PyUnicode_CheckExact(left)) {
        return PyUnicode_Compare(left, right) == 0;
    }
    if (PyFloat_CheckExact(left)) {
        double a = PyFloat_AS_DOUBLE(left), b = PyFloat_AS_DOUBLE(right);
        return memcmp(&a, &b, sizeof a) == 0;
    }
    if (PyComplex_CheckExact(left)) {
        return complex_equal(left, right);
    }
    int equal;
    if (PyTuple_CheckExact(left) || PyFrozenSet_CheckExact(left)) {
        if (Py_EnterRecursiveCall(" in a guard")) {
            return 0;
        }
        equal = PyTuple_CheckExact(left) ? tuples_equal(left, right) : frozensets_equal(left, right);
        Py_LeaveRecursiveCall();
        return equal;
    }
    return PyObject_RichCompareBool(left, right, Py_EQ) == 1;
}

static int
is_constant_item(PyObject *item, PyObject *unused)
{
    (void)unused;
    return is_constant(item);
}

/* Whether what constants_equal says of `object` can never change and runs no Python code. */
int
is_constant(PyObject *object)
{
    if (PyTuple_CheckExact(object)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++) {
            if (!is_constant(PyTuple_GET_ITEM(object, i))) {
                return 0;
            }
        }
        return 1;
    }
    if (PyFrozenSet_CheckExact(object)) {
        return all_items(object, is_constant_item, NULL);
    }
    return object == Py_None || object == Py_Ellipsis || PyBool_Check(object) || PyLong_CheckExact(object) ||
           PyUnicode_CheckExact(object) || PyBytes_CheckExact(object) || PyFloat_CheckExact(object) ||
           PyComplex_CheckExact(object);
}

static int
has_length(PyObject *object, Py_ssize_t length)
{
    if (PyList_Check(object) || PyTuple_Check(object)) {
        return Py_SIZE(object) == length;
    }
    if (PyDict_Check(object)) {
        return PyDict_GET_SIZE(object) == length;
    }
    return PyAnySet_Check(object) && PySet_GET_SIZE(object) == length;
}

static int
same_key(PyObject *left, PyObject *right)
{
    return left == right || (is_constant(left) && constants_equal(left, right));
}

static int
is_referent(PyObject *weakref, PyObject *object, Walk *walk)
{
    PyObject *referent = guard_referent(weakref, walk);
    Py_XDECREF(referent);
    return referent == object;
}

static int
lacks_referent(PyObject *object, PyObject *weakref, Walk *walk)
{
    PyObject *key = guard_referent(weakref, walk);
    int lacks = key != NULL && PyDict_Check(object) && PyDict_Contains(object, key) == 0;
    Py_XDECREF(key);
    return lacks;
}

/* As has_keys; keys may be weakrefs that stand for what they refer to. */
static int
has_weak_keys(PyObject *object, PyObject *keys, Walk *walk)
{
    if (!PyDict_Check(object) || PyODict_Check(object) || PyDict_GET_SIZE(object) != PyTuple_GET_SIZE(keys)) {
        return 0;
    }
    Py_ssize_t position = 0;
    PyObject *key, *value;
    for (Py_ssize_t i = 0; PyDict_Next(object, &position, &key, &value); i++) {
        PyObject *expected = PyTuple_GET_ITEM(keys, i);
        if (PyWeakref_CheckRefExact(expected) ? !is_referent(expected, key, walk) : !same_key(expected, key)) {
            return 0;
        }
    }
    return 1;
}

/* An OrderedDict keeps its order apart from the dict that it is. */
static int
has_ordered_keys(PyObject *object, PyObject *keys)
{
    PyObject *iterator = PyODict_Type.tp_iter(object);
    if (iterator == NULL) {
        return 0;
    }
    int equal = 1;
    for (Py_ssize_t i = 0; equal && i < PyTuple_GET_SIZE(keys); i++) {
        PyObject *key = PyIter_Next(iterator);
        equal = key != NULL && same_key(PyTuple_GET_ITEM(keys, i), key);
        Py_XDECREF(key);
    }
    Py_DECREF(iterator);
    return equal;
}

static int
has_keys(PyObject *object, PyObject *keys)
{
    if (!PyDict_Check(object) || PyDict_GET_SIZE(object) != PyTuple_GET_SIZE(keys)) {
        return 0;
    }
    if (PyODict_Check(object)) {
        return has_ordered_keys(object, keys);
    }
    Py_ssize_t position = 0;
    PyObject *key, *value;
    for (Py_ssize_t i = 0; PyDict_Next(object, &position, &key, &value); i++) {
        if (!same_key(PyTuple_GET_ITEM(keys, i), key)) {
            return 0;
        }
    }
    return 1;
}

static PyObject *
look_up_in_mro(PyObject *object, PyObject *name)
{
    return _PyType_Lookup((PyTypeObject *)object, name);
}

/* Exactly these classes, by identity. */
static int
has_mro(PyObject *object, PyObject *classes)
{
    if (!PyType_Check(object)) {
        return 0;
    }
    PyObject *name = PyUnicode_InternFromString("__mro__");
    if (name != NULL) {
        _PyType_Lookup((PyTypeObject *)object, name); /* gives the type a version, without which nobody is told of changes */
        Py_DECREF(name);
    }
    PyErr_Clear();
    PyObject *mro = ((PyTypeObject *)object)->tp_mro;
    if (mro == NULL || PyTuple_GET_SIZE(mro) != PyTuple_GET_SIZE(classes)) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        if (PyTuple_GET_ITEM(mro, i) != PyTuple_GET_ITEM(classes, i)) {
            return 0;
        }
    }
    return 1;
}

int
check_holds(const Check *check, PyObject *object, Walk *walk)
{
    switch (check->kind) {
    case CHECK_IS:
        return object == check->value;
    case CHECK_IS_NOT:
        return object != check->value;
    case CHECK_TYPE:
        return (PyObject *)Py_TYPE(object) == check->value;
    case CHECK_EQ:
        return constants_equal(object, check->value);
    case CHECK_LEN:
        return has_length(object, check->index);
    case CHECK_KEYS:
        return has_keys(object, check->value);
    case CHECK_HAS:
        return PyDict_Check(object) && PyDict_Contains(object, check->value) == 1;
    case CHECK_LACKS:
        return PyDict_Check(object) && PyDict_Contains(object, check->value) == 0;
    case CHECK_MRO_EQ:
        return has_mro(object, check->value);
    case CHECK_MRO_IS:
        return PyType_Check(object) && look_up_in_mro(object, check->value) == check->other;
    case CHECK_MRO_LACKS:
        return PyType_Check(object) && look_up_in_mro(object, check->value) == NULL && !PyErr_Occurred();
    case CHECK_FUNC_CODE:
        return PyFunction_Check(object) && PyFunction_GET_CODE(object) == check->value;
    case CHECK_UNBOUND_CELL:
        return PyCell_Check(object) && PyCell_GET(object) == NULL;
    case CHECK_SHAPE:
        return guard_shape_holds(check, object);
    case CHECK_TENSOR:
        if (check->second >= walk->guards->n_handed) {
            Py_XSETREF(walk->found[check->second], Py_NewRef(object));
        }
        return 1;
    case CHECK_IS_WEAK:
        return is_referent(check->value, object, walk);
    case CHECK_LACKS_WEAK:
        return lacks_referent(object, check->value, walk);
    case CHECK_KEYS_WEAK:
        return has_weak_keys(object, check->value, walk);
    case CHECK_TRUE: {
        PyObject *answer = PyObject_CallOneArg(check->value, object);
        int truth = answer != NULL ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        return truth == 1;
    }
    default:
        Py_UNREACHABLE();
    }
}
