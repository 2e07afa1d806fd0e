/* What a successful walk below a const or weak root saw, so that the next one need not walk. */
#ifndef DYNACORE_MEMO_H
#define DYNACORE_MEMO_H

#include "guards.h"

/* Whether everything below `root_child` holds: from its memo while that is valid, else by a walk that is remembered. */
int memo_holds(Node *root_child, Walk *walk);

/* memo_summary.c: whether everything below constant roots holds, by the summary of their memos. -1: there is none now. */
int summary_holds(Walk *walk);

/* After an evaluation without one, in which they held: makes one if that has been so for a while. */
void summary_consider(Guards *guards);

void summary_drop(Guards *guards);

/* memo_coverage.c: a list of (index of the node, how, what). */
PyObject *memo_coverage(Guards *guards, PyObject *unused);

void memo_free(struct Memo *memo);
int memo_traverse(struct Memo *memo, visitproc visit, void *arg);

#endif
