/* CPython 3.13 */
#include "cpython_dict.h"
#include "cpython_dict_version.h"
#include "cpython_since_312.h"
#include "cpython_since_313.h"
