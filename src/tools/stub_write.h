/* The two files of one tool. `name` is the function's; what does not fit marks b failed. */
#pragma once

struct buf;
struct stub_tool;

void stub_write_python(struct buf *b, const struct stub_tool *tool, const char *name);
void stub_write_node(struct buf *b, const struct stub_tool *tool, const char *name);
void stub_line(struct buf *b, const char *text); /* one line of prose, for a comment behind "//" */
