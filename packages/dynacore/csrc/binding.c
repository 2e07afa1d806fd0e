/* Arguments to parameters, as a call of the plain function would bind them. */
#include "compiled.h"

int
signature_init(Signature *signature, PyObject *object)
{
    PyCodeObject *code = (PyCodeObject *)object;
    signature->names = PyCode_GetVarnames(code);
    if (signature->names == NULL) {
        return -1;
    }
    signature->code = (PyCodeObject *)Py_NewRef(object);
    signature->n_positional = code->co_argcount;
    signature->n_positional_only = code->co_posonlyargcount;
    signature->n_keyword_only = code->co_kwonlyargcount;
    signature->has_varargs = (code->co_flags & CO_VARARGS) != 0;
    signature->has_varkw = (code->co_flags & CO_VARKEYWORDS) != 0;
    signature->n_slots =
        code->co_argcount + code->co_kwonlyargcount + signature->has_varargs + signature->has_varkw;
    return 0;
}

/* The slot of the parameter that a keyword names; -1: none. */
static int
keyword_slot(const Signature *signature, PyObject *name)
{
    int end = signature->n_positional + signature->n_keyword_only;
    for (int i = signature->n_positional_only; i < end; i++) {
        if (PyTuple_GET_ITEM(signature->names, i) == name) {
            return i;
        }
    }
    for (int i = signature->n_positional_only; i < end; i++) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(signature->names, i), name) == 0) {
            return i;
        }
    }
    return -1;
}

/* The slots of the keywords, remembered: a call site passes the same tuple each time. NULL: exception, or odd names. */
static const int *
keyword_slots(Compiled *compiled, PyObject *kwnames)
{
    if (compiled->kwnames == kwnames) {
        return compiled->kwslots;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(kwnames);
    int *slots = PyMem_Malloc(n * sizeof(int));
    if (slots == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        if (!PyUnicode_CheckExact(name)) { /* a subclass of str may compare as it likes: leave it to CPython */
            PyMem_Free(slots);
            return NULL;
        }
        slots[i] = keyword_slot(&compiled->signature, name);
    }
    PyMem_Free(compiled->kwslots);
    compiled->kwslots = slots;
    Py_XSETREF(compiled->kwnames, Py_NewRef(kwnames));
    return slots;
}

static int
bind_keywords(Compiled *compiled, PyObject *const *values, PyObject *kwnames, PyObject **slots)
{
    const Signature *signature = &compiled->signature;
    const int *kwslots = keyword_slots(compiled, kwnames);
    if (kwslots == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *extra = signature->has_varkw ? slots[signature->n_slots - 1] : NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++) {
        int slot = kwslots[i];
        if (slot >= 0) {
            if (slots[slot] != NULL) {
                return 0;
            }
            slots[slot] = Py_NewRef(values[i]);
        }
        else if (extra == NULL) {
            return 0;
        }
        else if (PyDict_SetItem(extra, PyTuple_GET_ITEM(kwnames, i), values[i]) < 0) {
            return -1;
        }
    }
    return 1;
}

/* `defaults` is a tuple for the last positional parameters, or NULL. */
static int
bind_defaults(const Signature *signature, PyObject *defaults, PyObject **slots)
{
    Py_ssize_t first = signature->n_positional - (defaults != NULL ? PyTuple_GET_SIZE(defaults) : 0);
    for (int i = 0; i < signature->n_positional; i++) {
        if (slots[i] == NULL) {
            if (i < first) {
                return 0;
            }
            slots[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, i - first));
        }
    }
    return 1;
}

static int
bind_keyword_defaults(const Signature *signature, PyObject *defaults, PyObject **slots)
{
    int end = signature->n_positional + signature->n_keyword_only;
    for (int i = signature->n_positional; i < end; i++) {
        if (slots[i] == NULL) {
            PyObject *value = NULL;
            if (defaults != NULL) {
                value = PyDict_GetItemWithError(defaults, PyTuple_GET_ITEM(signature->names, i));
            }
            if (value == NULL) {
                return PyErr_Occurred() ? -1 : 0;
            }
            slots[i] = Py_NewRef(value);
        }
    }
    return 1;
}

/* What doesn't fit goes into *args and **kwargs; these exist even when empty. */
static int
bind_rest(const Signature *signature, PyObject *const *args, Py_ssize_t nargs, PyObject **slots)
{
    Py_ssize_t extra = nargs > signature->n_positional ? nargs - signature->n_positional : 0;
    int next = signature->n_positional + signature->n_keyword_only;
    if (signature->has_varargs) {
        PyObject *rest = PyTuple_New(extra);
        if (rest == NULL) {
            return -1;
        }
        for (Py_ssize_t i = 0; i < extra; i++) {
            PyTuple_SET_ITEM(rest, i, Py_NewRef(args[nargs - extra + i]));
        }
        slots[next++] = rest;
    }
    else if (extra > 0) {
        return 0;
    }
    if (signature->has_varkw) {
        slots[next] = PyDict_New();
        return slots[next] != NULL ? 1 : -1;
    }
    return 1;
}

int
bind_arguments(Compiled *compiled, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **slots)
{
    const Signature *signature = &compiled->signature;
    Py_ssize_t given = Py_MIN(nargs, signature->n_positional);
    for (Py_ssize_t i = 0; i < given; i++) {
        slots[i] = Py_NewRef(args[i]);
    }
    if (nargs == signature->n_slots && kwnames == NULL && given == nargs) {
        return 1; /* only plain parameters, all given */
    }
    int bound = bind_rest(signature, args, nargs, slots);
    if (bound == 1 && kwnames != NULL) {
        bound = bind_keywords(compiled, args + nargs, kwnames, slots);
    }
    PyObject *function = compiled->function;
    if (PyMethod_Check(function)) {
        function = PyMethod_GET_FUNCTION(function);
    }
    int plain = PyFunction_Check(function);
    if (bound == 1) {
        bound = bind_defaults(signature, plain ? PyFunction_GET_DEFAULTS(function) : NULL, slots);
    }
    if (bound == 1) {
        bound = bind_keyword_defaults(signature, plain ? PyFunction_GET_KW_DEFAULTS(function) : NULL, slots);
    }
    return bound;
}
