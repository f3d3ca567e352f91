/* A sandbox as clients see it. */
#pragma once

struct jw;
struct sandbox_info;

void sandbox_json(struct jw *w, const struct sandbox_info *info);
void sandbox_json_status(struct jw *w, const struct sandbox_info *info); /* the short form */
/* "metadata": {...} */
void sandbox_write_metadata(struct jw *w, const struct sandbox_info *info);
