/* A network of the test's own: nothing that it does there reaches any other machine. */
#pragma once

#include <stdbool.h>

/* From here on the process is in a new network namespace with nothing but a loopback device. False:
 * it may not have one. */
bool own_net_enter(void);
/* The loopback device gets one more address; number: 1, 2, ... for each. */
void own_net_add(int number, const char *v4);
