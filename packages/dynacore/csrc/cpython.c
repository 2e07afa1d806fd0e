/* The only file that is compiled with CPython's internal headers. */
#define Py_BUILD_CORE_MODULE 1
#include "cpython.h"
#include "internal/pycore_dict.h"
#include <stddef.h>

_Static_assert(sizeof(void *) == sizeof(uint64_t), "words of 64 bits are what facts are recorded in");

#if PY_VERSION_HEX < 0x030B0000
#error "dynacore needs CPython 3.11 or newer"
#elif PY_VERSION_HEX < 0x030C0000
#include "cpython_311.h"
#elif PY_VERSION_HEX < 0x030D0000
#include "cpython_312.h"
#elif PY_VERSION_HEX < 0x030E0000
#include "cpython_313.h"
#elif PY_VERSION_HEX < 0x030F0000
#include "cpython_314.h"
#elif PY_VERSION_HEX < 0x03100000
#include "cpython_315.h"
#else
#error "dynacore doesn't know this release of CPython yet: docs/porting.md says how to add it"
#endif

_Static_assert(offsetof(PyDictValues, values) % sizeof(uint64_t) == 0, "values of shared keys are whole words");
_Static_assert(offsetof(PyDictObject, ma_keys) % sizeof(uint64_t) == 0, "so is what leads to them");
_Static_assert(sizeof(((PyDictKeysObject *)NULL)->dk_nentries) == sizeof(uint64_t), "so is the number of keys");

Capabilities cpython_capabilities;

const Py_ssize_t cpython_range_iterator_size = sizeof(RangeIterator);

PyObject **
cpython_dict_slot(PyObject *object)
{
    return _PyObject_GetDictPtr(object);
}

const uint64_t *
cpython_raw_dict_version(PyObject *dict)
{
    return dict_version(dict);
}

const uint64_t *
cpython_dict_version(PyObject *dict)
{
    int seen = has_shared_keys(dict) ? cpython_capabilities.instance_dict_versions : cpython_capabilities.dict_versions;
    return seen ? dict_version(dict) : NULL;
}

const uint64_t *
cpython_raw_type_version(PyTypeObject *type)
{
    /* The tag has 32 bits; nothing but padding shares its word. */
    _Static_assert(offsetof(PyTypeObject, tp_version_tag) % sizeof(uint64_t) == 0, "the tag starts a word");
    _Static_assert(offsetof(PyTypeObject, tp_finalize) - offsetof(PyTypeObject, tp_version_tag) == sizeof(uint64_t),
                   "the tag is alone in its word");
    return type_has_version(type) ? (const uint64_t *)&type->tp_version_tag : NULL;
}

const uint64_t *
cpython_type_version(PyTypeObject *type)
{
    return cpython_capabilities.type_versions ? cpython_raw_type_version(type) : NULL;
}

int
cpython_has_shared_keys(PyObject *dict)
{
    return has_shared_keys(dict);
}

PyObject *
cpython_swap_handled_exception(PyObject *exception)
{
    _PyErr_StackItem *item = PyThreadState_Get()->exc_info;
    PyObject *previous = item->exc_value;
    item->exc_value = exception;
    return previous;
}
