/* What a file is, by the end of its name: for clients who show it or hand it on. */
#pragma once

/* "text/markdown"; "application/octet-stream" when the name says nothing. */
const char *media_type(const char *name);
