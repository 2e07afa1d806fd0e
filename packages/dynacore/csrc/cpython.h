/* What differs between releases of CPython, or needs its internal headers.
 * cpython.c includes the one file cpython_3xx.h of the release that it is compiled for. */
#ifndef DYNACORE_CPYTHON_H
#define DYNACORE_CPYTHON_H

#include <Python.h>
#include <stdint.h>

/* The most words that cpython_dict_value_words writes. */
#define CPYTHON_MAX_DICT_WORDS 4

/* A word of memory and what it held when a fact was recorded: the fact holds while the word does. */
typedef struct {
    const uint64_t *address;
    uint64_t expected;
} Word;

/* Objects/listobject.c and Objects/tupleobject.c: an iterator over a list or a tuple. */
typedef struct {
    PyObject_HEAD
    Py_ssize_t index;
    PyObject *sequence; /* NULL once exhausted */
} SequenceIterator;

/* What is about to happen to a watched object. */
typedef enum {
    CHANGE_VALUE, /* a key of a dict gets another value */
    CHANGE_KEYS,  /* a key comes or goes */
    CHANGE_ALL,   /* anything may change */
    CHANGE_GONE,  /* the object ends */
} Change;

/* `key` is NULL unless one key is concerned. May not run Python code, nor change what is watched. */
typedef void (*ChangeCallback)(PyObject *object, Change change, PyObject *key);

/* Takes the current exception: one normalised object that holds its traceback. NULL when there is none. */
PyObject *cpython_take_exception(void);

/* Raises `exception` with the traceback that it holds, leaving its __context__ alone. Steals the reference. */
void cpython_raise(PyObject *exception);

/* Replaces the exception that this frame's sys.exc_info() sees; returns the previous one or NULL. Steals `exception`. */
PyObject *cpython_swap_handled_exception(PyObject *exception);

/* Where an object keeps its instance dict (made now if the values are inline), NULL when it has no such place. */
PyObject **cpython_dict_slot(PyObject *object);

/* Which of its counters this interpreter was seen to move with every change: probe.c finds out at import. */
typedef struct {
    int dict_versions;          /* of a dict that has keys of its own */
    int instance_dict_versions; /* of a dict that shares its keys: attributes of an instance are written behind its back */
    int type_versions;
} Capabilities;

extern Capabilities cpython_capabilities;

/* Tries every kind of change. -1 with an exception when that wasn't possible. */
int cpython_probe(void);

/* -1 with ImportError where the interpreter's objects don't lie in memory as the headers said. */
int cpython_self_check(void);

/* Where a dict's version is, whether or not it can be relied on; NULL when this CPython has none. */
const uint64_t *cpython_raw_dict_version(PyObject *dict);

/* The word that changes with every change of the dict, NULL when there is none. */
const uint64_t *cpython_dict_version(PyObject *dict);

/* The word that changes with every change of the type or of its bases, NULL when there is none, or it isn't valid now. */
const uint64_t *cpython_type_version(PyTypeObject *type);

/* The same, whether or not it can be relied on. */
const uint64_t *cpython_raw_type_version(PyTypeObject *type);

/* What a weakref refers to, a new reference; NULL when that is gone. */
PyObject *cpython_weak_referent(PyObject *weakref);

/* From now on `callback` is told before something changes that cpython_watch() was called for. Called once. */
void cpython_start_watching(ChangeCallback callback);

/* Watches a dict, a type or a function, which must live until it is unwatched or CHANGE_GONE was told. 0: this CPython can't. */
int cpython_watch(PyObject *object);
void cpython_unwatch(PyObject *object);

/* Whether the dict shares its keys with others, as those of instances do. */
int cpython_has_shared_keys(PyObject *dict);

/* Words that hold exactly while `dict` maps this very str `key` to the same object. Returns their number, 0 when not found. */
int cpython_dict_value_words(PyObject *dict, PyObject *key, Word *words);

/* The number that comes next from an iterator over a range of machine-sized numbers; 0 at its end. */
int cpython_range_peek(PyObject *iterator, long *number);

/* How large such an iterator is, in bytes. */
extern const Py_ssize_t cpython_range_iterator_size;

#endif
