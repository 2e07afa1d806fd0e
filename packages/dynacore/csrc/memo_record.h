/* Recording a memo: a second walk that notes every fact it sees. */
#ifndef DYNACORE_MEMO_RECORD_H
#define DYNACORE_MEMO_RECORD_H

#include "cpython.h"
#include "guards.h"
#include "watch.h"

#define DRIFTS 2 /* a node with so many early changes is recorded in another way */
#define SETTLED 16 /* a memo that served this often was worth its recording, whatever changed then */

typedef struct {
    void *items;
    Py_ssize_t count, capacity;
} Array;

/* What counts when a word changes: a node's drift. And what the word is, for people. */
typedef struct {
    unsigned char *drift;
    const char *what;
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
    Node *node;
    const Check *check;
    PyObject *object;
} Question;

/* A watched dict or type. */
typedef struct Fact {
    Watch watch;
    struct Memo *memo;
    Node *node;
    struct Fact *next;
    Py_ssize_t served; /* by the memo, when the last change came that didn't matter */
    int strikes;       /* changes that didn't matter, each soon after the one before */
} Fact;

typedef struct Memo {
    char valid;          /* cleared when something watched changes */
    char *summary_valid; /* so is this then, if it isn't NULL */
    const Py_ssize_t *clock; /* the guards' */
    Py_ssize_t born;
    Fact *facts;
    Array words;     /* Word */
    Array owners;    /* Owner, one for each word */
    Array found;     /* Found */
    Array edges;     /* Edge */
    Array questions; /* Question */
    Array held;      /* PyObject *, owned: constants, and dicts that CPython would turn back into inline values */
} Memo;

/* Of `root`, to which `root_child` leads. NULL when something below changed meanwhile, or memory is short. */
Memo *memo_record(Node *root_child, PyObject *root, Walk *walk);

/* memo.c: the first word that changed, -1: none did. */
Py_ssize_t memo_first_change(const Array *words);

/* New references to what was found, into their places in the walk's `found`. */
void memo_hand_over(const Array *items, PyObject **found);

int memo_rest_holds(const Array *edges, const Array *questions, Walk *walk);

/* How many evaluations the memo has seen. */
static inline Py_ssize_t
memo_served(const Memo *memo)
{
    return *memo->clock - memo->born;
}

/* memo_slots.c: where the object keeps the attribute, while its class is as it is now. NULL: not in a field of its own. */
PyObject **memo_slot_field(PyObject *object, PyObject *key);

/* memo_facts.c: has the memo watch the node's object. 0: it can't be watched. */
int memo_watch(Memo *memo, Node *node, PyObject *object);

void memo_stop_watching(Memo *memo);

/* Notes that a fact changed. */
void memo_blame(const Memo *memo, unsigned char *drift);

#endif
