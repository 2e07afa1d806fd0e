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
#else
#error "dynacore doesn't know this release of CPython yet"
#endif

PyObject **
cpython_dict_slot(PyObject *object)
{
    return _PyObject_GetDictPtr(object);
}

const uint64_t *
cpython_type_version(PyTypeObject *type)
{
    if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) || type->tp_version_tag == 0) {
        return NULL;
    }
    /* The tag has 32 bits; nothing but padding shares its word. */
    _Static_assert(offsetof(PyTypeObject, tp_version_tag) % sizeof(uint64_t) == 0, "the tag starts a word");
    _Static_assert(offsetof(PyTypeObject, tp_finalize) - offsetof(PyTypeObject, tp_version_tag) == sizeof(uint64_t),
                   "the tag is alone in its word");
    return (const uint64_t *)&type->tp_version_tag;
}

PyObject *
cpython_swap_handled_exception(PyObject *exception)
{
    _PyErr_StackItem *item = PyThreadState_Get()->exc_info;
    PyObject *previous = item->exc_value;
    item->exc_value = exception;
    return previous;
}
