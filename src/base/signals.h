/* Signals by name. */
#pragma once

const char *signal_name(int number); /* "SIGINT"; NULL */
int signal_from(const char *name);   /* "SIGINT" or "INT", in either case; 0: none */
