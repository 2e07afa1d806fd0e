/* Which changes this interpreter's version counters see. A counter that misses one kind of change can't be relied on; that
 * is found out by trying, since releases differ in it, and so do the patch releases of one. */
#include "cpython.h"

/* Each group: an object, and functions that change it. Code that is run often is specialised: `store` is. */
static const char PROGRAM[] =
    "class Base:\n"
    "    inherited = 0\n"
    "class Other(Base):\n"
    "    pass\n"
    "class Class(Base):\n"
    "    def __init__(self):\n"
    "        self.first = self.second = 0\n"
    "def store(value):\n"
    "    instance.first = value\n"
    "names = {'first': 0, 'second': 0}\n"
    "instance = Class()\n"
    "shared = instance.__dict__\n"
    "for value in range(100):\n"
    "    store(value)\n"
    "def changes_of_dict(names):\n"
    "    return (lambda: names.__setitem__('first', object()), lambda: names.update(third=0),\n"
    "            lambda: names.pop('third'), lambda: names.__delitem__('second'))\n"
    "dict_versions = names, (*changes_of_dict(names), names.clear)\n"
    "instance_dict_versions = shared, (\n"
    "    lambda: store(object()), lambda: setattr(instance, 'first', object()), lambda: setattr(instance, 'third', 0),\n"
    "    lambda: delattr(instance, 'third'), *changes_of_dict(shared))\n"
    "type_versions = Class, (\n"
    "    lambda: setattr(Class, 'own', 0), lambda: setattr(Class, 'own', 1), lambda: delattr(Class, 'own'),\n"
    "    lambda: setattr(Base, 'inherited', 1), lambda: setattr(Class, '__bases__', (Other,)))\n";

typedef const uint64_t *(*Counter)(PyObject *);

static const uint64_t *
type_counter(PyObject *type)
{
    PyObject *name = PyUnicode_InternFromString("__name__");
    if (name == NULL) {
        return NULL;
    }
    (void)_PyType_Lookup((PyTypeObject *)type, name); /* a look-up gives a type its version */
    Py_DECREF(name);
    return cpython_raw_type_version((PyTypeObject *)type);
}

/* Whether every change of a group's object moves its counter. -1: a change failed. */
static int
sees_all(PyObject *group, Counter counter)
{
    PyObject *object = PyTuple_GET_ITEM(group, 0), *changes = PyTuple_GET_ITEM(group, 1);
    int seen = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(changes); i++) {
        const uint64_t *word = counter(object);
        uint64_t before = word != NULL ? *word : 0;
        PyObject *result = PyObject_CallNoArgs(PyTuple_GET_ITEM(changes, i));
        if (result == NULL) {
            return -1;
        }
        Py_DECREF(result);
        seen = seen && word != NULL && *word != before;
    }
    return seen;
}

/* Writes down whether the group's counter sees all. -1 with an exception. */
static int
probe(PyObject *namespace, const char *name, Counter counter, int *seen)
{
    PyObject *group = PyDict_GetItemString(namespace, name);
    *seen = group != NULL ? sees_all(group, counter) : -1;
    return *seen < 0 ? -1 : 0;
}

int
cpython_probe(void)
{
    Capabilities found = {0};
    PyObject *namespace = PyDict_New(), *module = PyUnicode_FromString("dynacore._C");
    int failed = namespace == NULL || module == NULL ||
                 PyDict_SetItemString(namespace, "__builtins__", PyEval_GetBuiltins()) < 0 ||
                 PyDict_SetItemString(namespace, "__name__", module) < 0;
    PyObject *result = failed ? NULL : PyRun_String(PROGRAM, Py_file_input, namespace, namespace);
    failed = result == NULL ||
             probe(namespace, "dict_versions", cpython_raw_dict_version, &found.dict_versions) < 0 ||
             probe(namespace, "instance_dict_versions", cpython_raw_dict_version, &found.instance_dict_versions) < 0 ||
             probe(namespace, "type_versions", type_counter, &found.type_versions) < 0;
    if (!failed) {
        cpython_capabilities = found;
    }
    if (namespace != NULL) {
        PyDict_Clear(namespace); /* the functions refer to it */
    }
    Py_XDECREF(result);
    Py_XDECREF(module);
    Py_XDECREF(namespace);
    return failed ? -1 : 0;
}
