/* What a successful walk below a const or weak root saw, so that the next one need not walk. */
#ifndef DYNACORE_MEMO_H
#define DYNACORE_MEMO_H

#include "guards.h"

/* Whether everything below `root_child` holds: from its memo while that is valid, else by a walk that is remembered. */
int memo_holds(Node *root_child, Walk *walk);

void memo_free(struct Memo *memo);
int memo_traverse(struct Memo *memo, visitproc visit, void *arg);

#endif
