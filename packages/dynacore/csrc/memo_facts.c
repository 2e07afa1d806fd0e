/* The facts of a memo that nobody has to look at: a watcher says when one of them changes, and whether it matters. */
#include "memo.h"
#include "memo_record.h"

#define MAX_DRIFT 200
#define MAX_STRIKES 16 /* a dict that is written to so often costs its writers more than looking costs us */

void
memo_blame(const Memo *memo, unsigned char *drift)
{
    if (memo_served(memo) < SETTLED) {
        *drift += *drift < MAX_DRIFT;
    }
}

static int
is_interned(PyObject *key)
{
    return key != NULL && PyUnicode_CheckExact(key) && PyUnicode_CHECK_INTERNED(key);
}

static int
is_about(const Check *check, Change change, PyObject *key)
{
    switch (check->kind) {
    case CHECK_LEN:
    case CHECK_KEYS:
        return change == CHANGE_KEYS;
    case CHECK_HAS:
    case CHECK_LACKS:
        return change == CHANGE_KEYS && (check->value == key || constants_equal(check->value, key));
    default:
        return 0;
    }
}

/* Whose drift the change of one key of the node's dict counts for; NULL: nothing that was read depends on it. */
static unsigned char *
who_depends(Node *node, Change change, PyObject *key)
{
    if (!is_interned(key)) {
        return &node->own_drift;
    }
    for (int i = 0; i < node->n_children; i++) {
        Node *child = node->children[i];
        if (child->access == ACCESS_KEY && child->key == key && child->drift < DRIFTS) {
            return &child->drift;
        }
    }
    for (int i = 0; i < node->n_checks; i++) {
        if (is_about(&node->checks[i], change, key)) {
            return &node->own_drift;
        }
    }
    return NULL;
}

/* Whether the dict should no longer be watched: its writers would pay all day. */
static int
is_written_all_the_time(Fact *fact)
{
    Memo *memo = fact->memo;
    Py_ssize_t served = memo_served(memo);
    fact->strikes = served - fact->served < SETTLED ? fact->strikes + 1 : 0;
    fact->served = served;
    return fact->strikes >= MAX_STRIKES;
}

static void
fact_changed(Watch *watch, Change change, PyObject *key)
{
    Fact *fact = (Fact *)watch;
    Node *node = fact->node;
    if (!fact->memo->valid) {
        return;
    }
    if (change == CHANGE_GONE) {
        memo_blame(fact->memo, &node->drift);
    }
    else if (change == CHANGE_ALL) {
        memo_blame(fact->memo, &node->own_drift);
    }
    else {
        unsigned char *drift = who_depends(node, change, key);
        if (drift != NULL) {
            memo_blame(fact->memo, drift);
        }
        else if (is_written_all_the_time(fact)) {
            node->own_drift = DRIFTS > node->own_drift ? DRIFTS : node->own_drift;
        }
        else {
            return;
        }
    }
    fact->memo->valid = 0;
    if (fact->memo->summary_valid != NULL) {
        *fact->memo->summary_valid = 0;
    }
}

int
memo_watch(Memo *memo, Node *node, PyObject *object)
{
    if (node->fact != NULL) {
        return node->fact->watch.on != NULL;
    }
    Fact *fact = PyMem_Calloc(1, sizeof(Fact));
    if (fact == NULL) {
        return 0;
    }
    fact->watch.alive = &memo->valid;
    fact->watch.changed = fact_changed;
    if (!watch_start(&fact->watch, object)) {
        PyMem_Free(fact);
        return 0;
    }
    fact->memo = memo;
    fact->node = node;
    fact->next = memo->facts;
    memo->facts = node->fact = fact;
    return 1;
}

void
memo_stop_watching(Memo *memo)
{
    while (memo->facts != NULL) {
        Fact *fact = memo->facts;
        memo->facts = fact->next;
        fact->node->fact = NULL;
        watch_stop(&fact->watch);
        PyMem_Free(fact);
    }
}
