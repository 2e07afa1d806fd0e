/* Fields of objects that attributes read: where in memory they lie, so that they can be polled. */
#include "memo_record.h"
#include <stddef.h>
#include <structmember.h>

static int
is_named(PyObject *key, const char *name)
{
    return PyUnicode_CompareWithASCIIString(key, name) == 0;
}

/* The pointer to a name that functions and classes keep apart from their other attributes. */
static PyObject **
name_field(PyObject *object, PyObject *key)
{
    if (PyFunction_Check(object)) {
        PyFunctionObject *function = (PyFunctionObject *)object;
        return is_named(key, "__name__") ? &function->func_name : is_named(key, "__qualname__") ? &function->func_qualname : NULL;
    }
    if (!PyType_Check(object) || !PyType_HasFeature((PyTypeObject *)object, Py_TPFLAGS_HEAPTYPE) ||
        _PyType_Lookup(Py_TYPE(object), key) != _PyType_Lookup(&PyType_Type, key)) {
        return NULL;
    }
    PyHeapTypeObject *type = (PyHeapTypeObject *)object;
    return is_named(key, "__name__") ? &type->ht_name : is_named(key, "__qualname__") ? &type->ht_qualname : NULL;
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
    PyObject **field = name_field(object, key);
    return field != NULL ? field : member_field(object, key);
}
