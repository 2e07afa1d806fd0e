/* Since 3.13: a type's version is 0 while it doesn't count; a weakref gives a reference to its referent. */

static int
type_has_version(PyTypeObject *type)
{
    return type->tp_version_tag != 0;
}

PyObject *
cpython_weak_referent(PyObject *weakref)
{
    PyObject *referent;
    return PyWeakref_GetRef(weakref, &referent) > 0 ? referent : NULL;
}
