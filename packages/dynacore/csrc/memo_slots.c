/* Fields of objects that attributes read: where in memory they lie, so that they can be polled. */
#include "memo_record.h"
#include <stddef.h>
#include <structmember.h>

typedef struct {
    const char *name;
    size_t offset;
} NamedField;

static const NamedField FUNCTION_FIELDS[] = {
    {"__name__", offsetof(PyFunctionObject, func_name)},
    {"__qualname__", offsetof(PyFunctionObject, func_qualname)},
    {NULL, 0},
};

static const NamedField TYPE_FIELDS[] = {
    {"__name__", offsetof(PyHeapTypeObject, ht_name)},
    {"__qualname__", offsetof(PyHeapTypeObject, ht_qualname)},
    {"__mro__", offsetof(PyTypeObject, tp_mro)},
    {"__bases__", offsetof(PyTypeObject, tp_bases)},
    {"__base__", offsetof(PyTypeObject, tp_base)},
    {NULL, 0},
};

static PyObject **
named_field(PyObject *object, const NamedField *fields, PyObject *key)
{
    for (; fields->name != NULL; fields++) {
        if (PyUnicode_CompareWithASCIIString(key, fields->name) == 0) {
            return (PyObject **)((char *)object + fields->offset);
        }
    }
    return NULL;
}

/* The pointer to what functions and classes keep apart from their other attributes. */
static PyObject **
own_field(PyObject *object, PyObject *key)
{
    if (PyFunction_Check(object)) {
        return named_field(object, FUNCTION_FIELDS, key);
    }
    if (!PyType_Check(object) || !PyType_HasFeature((PyTypeObject *)object, Py_TPFLAGS_HEAPTYPE) ||
        _PyType_Lookup(Py_TYPE(object), key) != _PyType_Lookup(&PyType_Type, key)) {
        return NULL;
    }
    return named_field(object, TYPE_FIELDS, key);
}

/* The place of an attribute that the class names in __slots__, or a C type as a member. */
static PyObject **
member_field(PyObject *object, PyObject *key)
{
    PyObject *found = _PyType_Lookup(Py_TYPE(object), key);
    if (found == NULL || !Py_IS_TYPE(found, &PyMemberDescr_Type)) {
        return NULL;
    }
    const PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
    return member->type == T_OBJECT_EX ? (PyObject **)((char *)object + member->offset) : NULL;
}

PyObject **
memo_slot_field(PyObject *object, PyObject *key)
{
    PyObject **field = own_field(object, key);
    return field != NULL ? field : member_field(object, key);
}
