/* How much C stack is left. A call from Python to Python needs none in CPython, but one through a Compiled does: with a
 * high recursion limit the stack would end before the limit is reached. */
#define _GNU_SOURCE
#include "core.h"
#include <pthread.h>

#define RESERVE (512 * 1024) /* what an entry's function may need below us; a quarter of a small stack */

static _Thread_local char *lowest = NULL; /* where to stop */

static char *
find_lowest(void)
{
    char *address = (char *)1; /* unknown: never stop */
#if defined(__linux__)
    pthread_attr_t attributes;
    void *bottom;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &bottom, &size) == 0) {
            address = (char *)bottom + Py_MIN(RESERVE, size / 4);
        }
        pthread_attr_destroy(&attributes);
    }
#endif
    return address;
}

int
stack_check(void)
{
    if (lowest == NULL) {
        lowest = find_lowest();
    }
    if ((char *)__builtin_frame_address(0) >= lowest) {
        return 0;
    }
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: the C stack is used up");
    return -1;
}
