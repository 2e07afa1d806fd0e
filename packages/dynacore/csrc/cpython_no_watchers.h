/* CPython before 3.12: nothing can be watched. */

void
cpython_start_watching(ChangeCallback callback)
{
    (void)callback;
}

int
cpython_watch(PyObject *object)
{
    (void)object;
    return 0;
}

void
cpython_unwatch(PyObject *object)
{
    (void)object;
}
