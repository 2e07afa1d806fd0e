/* Until 3.12: a flag says whether a type's version counts; a weakref lends its referent. */

static int
type_has_version(PyTypeObject *type)
{
    return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) && type->tp_version_tag != 0;
}

PyObject *
cpython_weak_referent(PyObject *weakref)
{
    PyObject *referent = PyWeakref_GetObject(weakref);
    return referent == NULL || referent == Py_None || Py_REFCNT(referent) == 0 ? NULL : Py_NewRef(referent);
}
