/* Recording a memo: a second walk that notes every fact it sees. */
#ifndef DYNACORE_MEMO_RECORD_H
#define DYNACORE_MEMO_RECORD_H

#include "cpython.h"
#include "guards.h"

#define DRIFTS 2 /* a node with so many early changes is recorded in another way */

typedef struct {
    void *items;
    Py_ssize_t count, capacity;
} Array;

/* What counts when a word changes: a node's drift. */
typedef struct {
    unsigned char *drift;
} Owner;

typedef struct {
    Py_ssize_t place; /* in the walk's `found` */
    PyObject *object; /* borrowed, like all objects below: alive while the words hold */
} Found;

typedef struct {
    Node *node;
    PyObject *parent;
} Edge;

typedef struct {
    const Check *check;
    PyObject *object;
} Question;

typedef struct Memo {
    Array words;     /* Word */
    Array owners;    /* Owner, one for each word */
    Array found;     /* Found */
    Array edges;     /* Edge */
    Array questions; /* Question */
    Array held;      /* PyObject *, owned: constants, and dicts that CPython would turn back into inline values */
    Py_ssize_t served;
} Memo;

/* Of `root`, to which `root_child` leads. NULL when something below changed meanwhile, or memory is short. */
Memo *memo_record(Node *root_child, PyObject *root, Walk *walk);

#endif
