/* CPython 3.15 */
#include "cpython_dict.h"
#include "cpython_since_312.h"
#include "cpython_since_313.h"
#include "cpython_since_314.h"
