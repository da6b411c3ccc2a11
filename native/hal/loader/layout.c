/* The compiler confirms every size and offset that the generator computed. */
#include "bedplate/hal_layout.h"
