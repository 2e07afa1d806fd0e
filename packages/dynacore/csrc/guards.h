/* Guard trees: accessors that lead from the state to objects, and checks on these. */
#ifndef DYNACORE_GUARDS_H
#define DYNACORE_GUARDS_H

#include <Python.h>
#include <stdint.h>

/* What a Point is entered with. `list` is NULL while the items lie in a plain array (a call's arguments). */
typedef struct {
    PyObject **items;
    Py_ssize_t size;
    PyObject *list;
} State;

void state_drop(State *state);

typedef enum {
    ACCESS_ROOT,
    ACCESS_ARG,
    ACCESS_CONST,
    ACCESS_WEAK,
    ACCESS_ATTR,
    ACCESS_DICT,
    ACCESS_KEY,
    ACCESS_WEAK_KEY,
    ACCESS_ITEM,
    ACCESS_TYPE,
    ACCESS_MRO,
    ACCESS_CELL,
    ACCESS_FUNC,
    ACCESS_METHOD,
    ACCESS_SLOT,
    ACCESS_CALL,
} AccessKind;

typedef enum {
    CHECK_IS,
    CHECK_IS_NOT,
    CHECK_TYPE,
    CHECK_EQ,
    CHECK_LEN,
    CHECK_KEYS,
    CHECK_HAS,
    CHECK_LACKS,
    CHECK_MRO_EQ,
    CHECK_MRO_IS,
    CHECK_MRO_LACKS,
    CHECK_FUNC_CODE,
    CHECK_UNBOUND_CELL,
    CHECK_IS_WEAK,
    CHECK_LACKS_WEAK,
    CHECK_KEYS_WEAK,
    CHECK_TRUE,
    CHECK_SHAPE,
    CHECK_TENSOR,
    CHECK_FIRST_OF_ROOT, /* from here on: only on the root */
    CHECK_STATE = CHECK_FIRST_OF_ROOT,
    CHECK_SWITCH,
    CHECK_CALL0_IS,
    CHECK_TENSORS, /* these two stand together */
    CHECK_TENSORS_ANY_GRAD,
    CHECK_SAME,
    CHECK_DIFFER,
    CHECK_INTS,
    CHECK_REL,
} CheckKind;

typedef struct Relation Relation;

typedef struct {
    CheckKind kind;
    PyObject *value;          /* the object, name, key or callable of the check */
    PyObject *other;          /* mro_is, state, call0_is: the object; rel: the tuple of handed indexes; shape: sizes */
    /* len, shape: the number; tensor: its place in the batch and in a walk's `found`; same, differ: handed indexes */
    Py_ssize_t index, second;
    Relation *relation;       /* ints */
} Check;

typedef struct Node {
    AccessKind access;
    PyObject *key;
    Py_hash_t hash;   /* of a str key */
    Py_ssize_t index; /* arg, item: the index; func, method: the byte offset of the field */
    Py_ssize_t handed;
    Check *checks;
    int n_checks;
    int n_children;
    struct Node **children;
    struct Memo *memo;         /* below a const or weak root: what the last walk saw */
    /* How often a fact changed soon after the memo recorded it: one that leads to this node's object, one about it. */
    unsigned char drift, own_drift;
    struct Fact *fact; /* while the memo has this node's object watched */
} Node;

typedef struct {
    PyObject_HEAD
    PyObject *tree; /* the tuples, as they were given */
    Py_ssize_t n_handed;
    Py_ssize_t n_batch; /* tensors that are checked in one call */
    Py_ssize_t n_loose; /* those of them that aren't handed over */
    Py_ssize_t *batch;  /* where in a walk's `found` each of them is */
    int any_grad;      /* whether they require a gradient doesn't matter */
    Py_ssize_t n_nodes, n_checks;
    Node *nodes; /* in the order of the tuples, the root first */
    Node **children;
    Check *checks;
    Py_ssize_t slow; /* accessors and checks that run arbitrary Python code */
    int n_weak;                 /* roots that are held weakly */
    int n_args;                 /* the root's children that start from the state come first */
    Py_ssize_t walks, recordings, recalls;
    Py_ssize_t clock;           /* evaluations */
    int calm;                   /* the last ones in which all memos served */
    struct Summary *summary;    /* of the memos, when they have been calm */
    Py_ssize_t n_states;        /* checks on torch's state, those on switches included */
    Py_ssize_t n_switches;
    struct TorchMemory *memory; /* what was read of torch when they, and the batch, last held */
    char state_is_suspect;      /* they failed the last time: ask them first */
    char busy; /* a walk is in progress, so that one inside it may change nothing here */
    PyObject *weakrefs;
} Guards;

/* One evaluation. `found` has room for the handed objects and, behind them, the loose tensors: owned references. */
typedef struct {
    Guards *guards;
    const State *state;
    PyObject **found;
    int dead;  /* a weakly held root is gone */
    int alone; /* no other walk of these guards is in progress: children may be reordered, memos used */
} Walk;

extern PyTypeObject Guards_Type;

typedef enum { GUARDS_MISS, GUARDS_HOLD, GUARDS_DEAD } GuardsResult;

/* Evaluates the guards. When they hold, found[0..n_handed) are new references; else nothing is.
 * Never leaves an exception set. */
GuardsResult guards_evaluate(Guards *guards, const State *state, PyObject **found);

/* guard_tree.c: `object` and everything below it. */
int node_holds(Node *node, PyObject *object, Walk *walk);

/* guard_access.c: what a weakref refers to, a new reference; NULL, and the walk is told, when it is gone. */
PyObject *guard_referent(PyObject *weakref, Walk *walk);

/* guard_access.c: the object that `node` leads to from `parent`, a new reference; NULL (maybe with an exception): a miss. */
PyObject *node_access(const Node *node, PyObject *parent, Walk *walk);

/* guard_relations.c: a program over the handed objects at `indexes`, verified. NULL with an exception: malformed. */
Relation *relation_parse(PyObject *program, PyObject *indexes);
void relation_free(Relation *relation);
int relation_true(const Relation *relation, PyObject *const *handed);

/* guard_torch.c */
int guard_state_holds(Guards *guards);
int guard_tensors_hold(const Check *check, Guards *guards, PyObject *const *found);
void guard_torch_forget(Guards *guards);
int guard_shape_holds(const Check *check, PyObject *object);
int guard_call_is_true(PyObject *callable, PyObject *const *args, Py_ssize_t n);
PyObject *guard_parse_sizes(PyObject *shape);

/* guard_checks.c */
int check_holds(const Check *check, PyObject *object, Walk *walk);
int constants_equal(PyObject *left, PyObject *right);
int is_constant(PyObject *object);

#endif
