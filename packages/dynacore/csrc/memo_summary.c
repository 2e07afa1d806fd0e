/* All memos of an entry in one piece.
 *
 * Capture relies on a hundred constant roots: functions, classes, namespaces. Going from one root's memo to the next
 * costs a call more than comparing what they hold, since each lies elsewhere in memory. So once all of them have served a
 * few times, what they list is copied into arrays that are gone through from one end to the other, with one flag for
 * everything that is watched. When something changes the copy is dropped, and the memos say which of them it was. */
#include "memo.h"
#include "memo_record.h"
#include <string.h>

#define CALM 2 /* evaluations in which all memos served, before they are copied */

typedef struct Summary {
    char valid;
    Array words, found, edges, questions;
    Py_ssize_t n_memos;
} Summary;

void
summary_drop(Guards *guards)
{
    Summary *summary = guards->summary;
    guards->calm = 0;
    if (summary != NULL) {
        for (int i = guards->n_args; i < guards->nodes->n_children; i++) {
            Memo *memo = guards->nodes->children[i]->memo;
            if (memo != NULL) {
                memo->summary_valid = NULL;
            }
        }
        guards->summary = NULL;
        PyMem_Free(summary->words.items);
        PyMem_Free(summary->found.items);
        PyMem_Free(summary->edges.items);
        PyMem_Free(summary->questions.items);
        PyMem_Free(summary);
    }
}

static int
append(Array *all, const Array *some, size_t size)
{
    if (some->count == 0) {
        return 1;
    }
    void *items = PyMem_Realloc(all->items, (all->count + some->count) * size);
    if (items == NULL) {
        return 0;
    }
    memcpy((char *)items + all->count * size, some->items, some->count * size);
    all->items = items;
    all->count += some->count;
    return 1;
}

static int
is_constant_root(const Node *child)
{
    return child->access == ACCESS_CONST;
}

static int
append_all(Summary *summary, Guards *guards)
{
    for (int i = guards->n_args; i < guards->nodes->n_children; i++) {
        Node *child = guards->nodes->children[i];
        Memo *memo = child->memo;
        if (!is_constant_root(child)) {
            continue;
        }
        if (memo == NULL || !memo->valid || !append(&summary->words, &memo->words, sizeof(Word)) ||
            !append(&summary->found, &memo->found, sizeof(Found)) ||
            !append(&summary->edges, &memo->edges, sizeof(Edge)) ||
            !append(&summary->questions, &memo->questions, sizeof(Question))) {
            return 0;
        }
        memo->summary_valid = &summary->valid;
        summary->n_memos++;
    }
    return 1;
}

void
summary_consider(Guards *guards)
{
    if (++guards->calm < CALM || guards->summary != NULL) {
        return;
    }
    Summary *summary = guards->summary = PyMem_Calloc(1, sizeof(Summary));
    if (summary == NULL) {
        return;
    }
    summary->valid = 1;
    if (!append_all(summary, guards) || summary->n_memos == 0) {
        summary_drop(guards);
    }
}

int
summary_holds(Walk *walk)
{
    Guards *guards = walk->guards;
    Summary *summary = guards->summary;
    if (summary == NULL) {
        return -1;
    }
    if (!summary->valid || memo_first_change(&summary->words) >= 0) {
        summary_drop(guards);
        return -1;
    }
    guards->recalls += summary->n_memos;
    memo_hand_over(&summary->found, walk->found);
    return memo_rest_holds(&summary->edges, &summary->questions, walk);
}
