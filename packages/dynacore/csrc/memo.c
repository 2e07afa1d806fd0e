/* The fast path below const and weak roots.
 *
 * A memo has dicts and types *watched* where this CPython can do that: it becomes invalid as soon as something that was
 * read there is about to change, and nobody has to look. The rest is a list of *words* of memory (an object's type, a
 * cell's contents, without watchers a dict's or a type's version …) and what they held when the facts below the root
 * were last seen to hold. While the memo is valid and all words are unchanged, so are the facts, and the objects found
 * are the same. The words are compared in the order in which the walk met them, parents first: what is watched and the
 * words before one guarantee that the object it lies in is still alive, since something alive still refers to it. No
 * Python code runs during that comparison.
 *
 * What can't be remembered is an *edge* (a node that is walked again from its remembered parent) or a *question* (a
 * check that is asked again); these run after every object needed has been given a reference.
 *
 * Facts that change often would make the memo useless. Each of them is owned by the node that it was recorded for. A
 * node whose facts change soon after they were recorded drifts, and is recorded in less far-reaching ways: a dict by the
 * values that were read instead of being watched, checks as questions, and at last the way to the node as an edge. */
#include "memo.h"
#include "memo_record.h"
#include <string.h>

static void
release(Memo *memo)
{
    memo_stop_watching(memo);
    for (Py_ssize_t i = 0; i < memo->held.count; i++) {
        Py_DECREF(((PyObject **)memo->held.items)[i]);
    }
    PyMem_Free(memo->words.items);
    PyMem_Free(memo->owners.items);
    PyMem_Free(memo->found.items);
    PyMem_Free(memo->edges.items);
    PyMem_Free(memo->questions.items);
    PyMem_Free(memo->held.items);
    PyMem_Free(memo);
}

void
memo_free(Memo *memo)
{
    if (memo != NULL) {
        release(memo);
    }
}

int
memo_traverse(Memo *memo, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < memo->held.count; i++) {
        Py_VISIT(((PyObject **)memo->held.items)[i]);
    }
    return 0;
}

Py_ssize_t
memo_first_change(const Array *all)
{
    const Word *words = all->items;
    for (Py_ssize_t i = 0; i < all->count; i++) {
        if (*words[i].address != words[i].expected) {
            return i;
        }
    }
    return -1;
}

void
memo_hand_over(const Array *all, PyObject **found)
{
    const Found *items = all->items;
    for (Py_ssize_t i = 0; i < all->count; i++) {
        Py_XSETREF(found[items[i].place], Py_NewRef(items[i].object));
    }
}

static int
edge_holds(const Edge *edge, Walk *walk)
{
    PyObject *object = node_access(edge->node, edge->parent, walk);
    int holds = object != NULL && node_holds(edge->node, object, walk);
    Py_XDECREF(object);
    return holds;
}

/* Edges and questions may run Python code, which may change everything, the memo's objects included. */
int
memo_rest_holds(const Array *all_edges, const Array *all_questions, Walk *walk)
{
    const Edge *edges = all_edges->items;
    const Question *questions = all_questions->items;
    for (Py_ssize_t i = 0; i < all_edges->count; i++) {
        Py_INCREF(edges[i].parent);
    }
    for (Py_ssize_t i = 0; i < all_questions->count; i++) {
        Py_INCREF(questions[i].object);
    }
    int holds = 1;
    for (Py_ssize_t i = 0; i < all_edges->count; i++) {
        holds = holds && edge_holds(&edges[i], walk);
        Py_DECREF(edges[i].parent);
    }
    for (Py_ssize_t i = 0; i < all_questions->count; i++) {
        holds = holds && check_holds(questions[i].check, questions[i].object, walk);
        Py_DECREF(questions[i].object);
    }
    return holds;
}

/* -1: there is no memo, or it doesn't hold any longer (and is gone). */
static int
recall(Node *root_child, Walk *walk)
{
    Memo *memo = root_child->memo;
    if (memo == NULL) {
        return -1;
    }
    if (memo->valid) {
        Py_ssize_t changed = memo_first_change(&memo->words);
        if (changed < 0) {
            walk->guards->recalls++;
            memo_hand_over(&memo->found, walk->found);
            return memo_rest_holds(&memo->edges, &memo->questions, walk);
        }
        memo_blame(memo, ((const Owner *)memo->owners.items)[changed].drift);
    }
    root_child->memo = NULL;
    release(memo);
    return -1;
}

static int
walk_and_record(Node *root_child, PyObject *root, Walk *walk)
{
    walk->guards->walks++;
    if (!node_holds(root_child, root, walk)) {
        return 0;
    }
    if (walk->alone) {
        walk->guards->recordings++;
        walk->guards->calm = 0;
        root_child->memo = memo_record(root_child, root, walk);
    }
    return 1;
}

int
memo_holds(Node *root_child, Walk *walk)
{
    PyObject *root = node_access(root_child, NULL, walk); /* the same object each time, while it lives */
    if (root == NULL) {
        return 0;
    }
    /* Without being alone, another walk of these guards may be using the memo. */
    int holds = walk->alone ? recall(root_child, walk) : -1;
    if (holds < 0) {
        holds = walk_and_record(root_child, root, walk);
    }
    Py_DECREF(root);
    return holds;
}
