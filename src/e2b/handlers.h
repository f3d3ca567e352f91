/* Every handler of E2B's calls, for the tables of routes. Each answers its call, now or later. */
#pragma once

struct api_call;

/* ports.c */
void e2b_port(struct api_call *c);
/* interpreter.c, interpreter_run.c */
void e2b_code_health(struct api_call *c);
void e2b_context_create(struct api_call *c);
void e2b_context_list(struct api_call *c);
void e2b_context_delete(struct api_call *c);
void e2b_context_restart(struct api_call *c);
void e2b_execute(struct api_call *c);
/* process.c, process_control.c */
void e2b_process_start(struct api_call *c);
void e2b_process_connect(struct api_call *c);
void e2b_process_list(struct api_call *c);
void e2b_process_send_input(struct api_call *c);
void e2b_process_close_stdin(struct api_call *c);
void e2b_process_send_signal(struct api_call *c);
void e2b_process_update(struct api_call *c);
/* health.c */
void e2b_health(struct api_call *c);
void e2b_envd_health(struct api_call *c);
/* filesystem.c */
void e2b_stat(struct api_call *c);
void e2b_make_dir(struct api_call *c);
void e2b_move(struct api_call *c);
void e2b_remove(struct api_call *c);
void e2b_list_dir(struct api_call *c);
