/* CPython 3.12 and newer: dicts and types tell who watches them before they change. */

static int dict_watcher = -1, type_watcher = -1, function_watcher = -1;
static ChangeCallback tell_change;

/* 3.12 says "modified" of a key that shared keys have had all along, and the dict gets its first value for now. */
static int
is_new(PyObject *dict, PyObject *key)
{
    return has_shared_keys(dict) &&
           !(PyUnicode_CheckExact(key) && _PyDict_GetItem_KnownHash(dict, key, PyObject_Hash(key)) != NULL);
}

static int
dict_changes(PyDict_WatchEvent event, PyObject *dict, PyObject *key, PyObject *new_value)
{
    (void)new_value;
    switch (event) {
    case PyDict_EVENT_MODIFIED:
        tell_change(dict, is_new(dict, key) ? CHANGE_KEYS : CHANGE_VALUE, key);
        break;
    case PyDict_EVENT_ADDED:
    case PyDict_EVENT_DELETED:
        tell_change(dict, CHANGE_KEYS, key);
        break;
    case PyDict_EVENT_DEALLOCATED:
        tell_change(dict, CHANGE_GONE, NULL);
        break;
    default:
        tell_change(dict, CHANGE_ALL, NULL);
    }
    return 0;
}

static int
type_changes(PyTypeObject *type)
{
    tell_change((PyObject *)type, CHANGE_ALL, NULL);
    return 0;
}

/* Told of every function there is. */
static int
function_changes(PyFunction_WatchEvent event, PyFunctionObject *function, PyObject *new_value)
{
    (void)new_value;
    if (event != PyFunction_EVENT_CREATE && event != PyFunction_EVENT_DESTROY) {
        tell_change((PyObject *)function, CHANGE_ALL, NULL);
    }
    return 0;
}

/* Not before it is wanted, as it costs a nanosecond whenever a function is made or ends. */
static int
watch_functions(void)
{
    if (function_watcher < 0) {
        function_watcher = PyFunction_AddWatcher(function_changes);
    }
    return function_watcher < 0 ? -1 : 0;
}

void
cpython_start_watching(ChangeCallback callback)
{
    tell_change = callback;
    dict_watcher = PyDict_AddWatcher(dict_changes);
    type_watcher = PyType_AddWatcher(type_changes);
    PyErr_Clear(); /* there are eight numbers of each kind, and others may have taken them all */
}

/* A metaclass's own mro() makes CPython forget the type's version without telling anybody. */
static int
has_own_mro_method(PyTypeObject *type)
{
    PyObject *name = PyUnicode_InternFromString("mro");
    int own = name == NULL || _PyType_Lookup(Py_TYPE(type), name) != _PyType_Lookup(&PyType_Type, name);
    Py_XDECREF(name);
    return own;
}

int
cpython_watch(PyObject *object)
{
    int watching = -1;
    if (PyDict_Check(object) && dict_watcher >= 0) {
        watching = PyDict_Watch(dict_watcher, object);
    }
    else if (PyType_Check(object) && type_watcher >= 0 && !has_own_mro_method((PyTypeObject *)object)) {
        watching = PyType_Watch(type_watcher, object);
        /* Only a type whose version is valid says that it changes. */
        if (watching == 0 && cpython_raw_type_version((PyTypeObject *)object) == NULL) {
            PyType_Unwatch(type_watcher, object);
            watching = -1;
        }
    }
    else if (PyFunction_Check(object)) {
        watching = watch_functions();
    }
    PyErr_Clear();
    return watching == 0;
}

void
cpython_unwatch(PyObject *object)
{
    int failed = PyDict_Check(object)   ? PyDict_Unwatch(dict_watcher, object)
                 : PyType_Check(object) ? PyType_Unwatch(type_watcher, object)
                                        : 0;
    if (failed < 0) {
        PyErr_Clear();
    }
}
