/* The callable that users hold, and how it binds arguments. */
#ifndef DYNACORE_COMPILED_H
#define DYNACORE_COMPILED_H

#include "core.h"

/* What binding needs to know of a code object. */
typedef struct {
    PyCodeObject *code;
    PyObject *names; /* parameters first: positional, keyword-only, *args, **kwargs */
    int n_positional, n_positional_only, n_keyword_only;
    int has_varargs, has_varkw;
    int n_slots;
} Signature;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    Point *point;
    Signature signature;
    char follows_code; /* the code is the function's own: a function whose __code__ was replaced is called as it is */
    PyObject *kwnames; /* the last call's keyword names, and their slots (-1: into **kwargs) */
    int *kwslots;
    PyObject *dict;
    PyObject *weakrefs;
} Compiled;

int signature_init(Signature *signature, PyObject *code);

/* Binds like CPython: fills slots[0..n_slots) with new references. 1: bound. 0: the arguments don't fit. -1: exception.
 * `slots` is zeroed by the caller, who drops what is in it in every case. */
int bind_arguments(Compiled *compiled, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **slots);

#endif
