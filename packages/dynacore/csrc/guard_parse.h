/* From nested tuples to nodes. */
#ifndef DYNACORE_GUARD_PARSE_H
#define DYNACORE_GUARD_PARSE_H

#include "guards.h"

/* Fills `guards` (its `tree` and `n_handed` are set). -1 with ValueError or TypeError when the tree is malformed. */
int guards_parse(Guards *guards);

#endif
