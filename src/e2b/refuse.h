/* Errors as E2B's clients read them. */
#pragma once

struct api_call;

/* {"code":404,"message":"..."}: the control plane, and files. */
void e2b_refuse_rest(struct api_call *c, int status, const char *code, const char *message,
		     const char *field);
/* The same, or {"code":"not_found","message":"..."} for a call of Connect's. */
void e2b_refuse_envd(struct api_call *c, int status, const char *code, const char *message,
		     const char *field);
/* {"sandboxId":"...","message":"...","port":3000,"code":502}: ports; a page for browsers. In
 * ports.c. */
void e2b_refuse_port(struct api_call *c, int status, const char *code, const char *message,
		     const char *field);
/* The message alone. */
void e2b_refuse_text(struct api_call *c, int status, const char *code, const char *message,
		     const char *field);
