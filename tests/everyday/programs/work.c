/* The library: all the work is here. */
#include "work.h"

void work(long rounds)
{
    spend(rounds);
}
