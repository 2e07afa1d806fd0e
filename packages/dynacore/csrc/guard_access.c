/* Accessors: the steps from one object to the next. */
#include "cpython.h"
#include "guards.h"

PyObject *
guard_referent(PyObject *weakref, Walk *walk)
{
    PyObject *referent = cpython_weak_referent(weakref);
    walk->dead |= referent == NULL;
    return referent;
}

static PyObject *
access_weak_key(const Node *node, PyObject *parent, Walk *walk)
{
    PyObject *key = guard_referent(node->key, walk);
    PyObject *value = key != NULL && PyDict_Check(parent) ? PyDict_GetItemWithError(parent, key) : NULL;
    Py_XINCREF(value);
    Py_XDECREF(key);
    return value;
}

static PyObject *
access_dict(PyObject *parent)
{
    PyObject **slot = PyType_Check(parent) ? NULL : cpython_dict_slot(parent);
    if (slot == NULL) {
        return NULL;
    }
    return *slot != NULL ? Py_NewRef(*slot) : PyObject_GenericGetDict(parent, NULL);
}

static PyObject *
access_key(const Node *node, PyObject *parent)
{
    if (!PyDict_Check(parent)) {
        return NULL;
    }
    PyObject *value = node->hash != -1 ? _PyDict_GetItem_KnownHash(parent, node->key, node->hash)
                                       : PyDict_GetItemWithError(parent, node->key);
    return Py_XNewRef(value);
}

static PyObject *
access_item(const Node *node, PyObject *parent)
{
    if (PyTuple_Check(parent)) {
        return node->index < PyTuple_GET_SIZE(parent) ? Py_NewRef(PyTuple_GET_ITEM(parent, node->index)) : NULL;
    }
    if (PyList_Check(parent)) {
        return node->index < PyList_GET_SIZE(parent) ? Py_NewRef(PyList_GET_ITEM(parent, node->index)) : NULL;
    }
    return NULL;
}

static PyObject *
access_field(const Node *node, PyObject *parent, PyTypeObject *type)
{
    if (!Py_IS_TYPE(parent, type)) {
        return NULL;
    }
    PyObject *value = *(PyObject **)((char *)parent + node->index);
    return Py_NewRef(value != NULL ? value : Py_None);
}

PyObject *
node_access(const Node *node, PyObject *parent, Walk *walk)
{
    switch (node->access) {
    case ACCESS_ARG:
        return node->index < walk->state->size ? Py_NewRef(walk->state->items[node->index]) : NULL;
    case ACCESS_CONST:
        return Py_NewRef(node->key);
    case ACCESS_WEAK:
        return guard_referent(node->key, walk);
    case ACCESS_ATTR:
        return PyObject_GetAttr(parent, node->key);
    case ACCESS_DICT:
        return access_dict(parent);
    case ACCESS_KEY:
        return access_key(node, parent);
    case ACCESS_WEAK_KEY:
        return access_weak_key(node, parent, walk);
    case ACCESS_ITEM:
        return access_item(node, parent);
    case ACCESS_TYPE:
        return Py_NewRef(Py_TYPE(parent));
    case ACCESS_MRO:
        return PyType_Check(parent) ? Py_XNewRef(_PyType_Lookup((PyTypeObject *)parent, node->key)) : NULL;
    case ACCESS_CELL:
        return PyCell_Check(parent) ? Py_XNewRef(PyCell_GET(parent)) : NULL;
    case ACCESS_FUNC:
        return access_field(node, parent, &PyFunction_Type);
    case ACCESS_METHOD:
        return access_field(node, parent, &PyMethod_Type);
    case ACCESS_SLOT:
        return PyObject_GenericGetAttr(parent, node->key);
    case ACCESS_CALL:
        return PyObject_CallOneArg(node->key, parent);
    case ACCESS_ROOT:
        break;
    }
    Py_UNREACHABLE();
}
