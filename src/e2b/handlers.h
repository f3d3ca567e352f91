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
void e2b_process_stream_input(struct api_call *c); /* process_pour.c */
/* sandboxes.c, sandbox_list.c */
void e2b_sandbox_create(struct api_call *c);
void e2b_sandbox_get(struct api_call *c);
void e2b_sandbox_list(struct api_call *c);
void e2b_sandbox_list_old(struct api_call *c);
/* sandbox_change.c */
void e2b_sandbox_delete(struct api_call *c);
void e2b_sandbox_timeout(struct api_call *c);
void e2b_sandbox_refresh(struct api_call *c);
void e2b_sandbox_pause(struct api_call *c);
void e2b_sandbox_connect(struct api_call *c);
void e2b_sandbox_resume(struct api_call *c);
void e2b_sandbox_network(struct api_call *c);
/* sandbox_metrics.c, sandbox_logs.c */
void e2b_sandbox_metrics(struct api_call *c);
void e2b_sandboxes_metrics(struct api_call *c);
void e2b_sandbox_logs(struct api_call *c);
void e2b_sandbox_logs_old(struct api_call *c);
/* snapshots.c */
void e2b_sandbox_fork(struct api_call *c);
void e2b_snapshot_create(struct api_call *c);
void e2b_snapshot_list(struct api_call *c);
/* secrets.c */
void e2b_secret_create(struct api_call *c);
void e2b_secret_list(struct api_call *c);
void e2b_secret_get(struct api_call *c);
void e2b_secret_change(struct api_call *c);
void e2b_secret_delete(struct api_call *c);
/* volumes.c */
void e2b_volume_create(struct api_call *c);
void e2b_volume_list(struct api_call *c);
void e2b_volume_get(struct api_call *c);
void e2b_volume_delete(struct api_call *c);
/* volume_content.c */
void e2b_volume_stat(struct api_call *c);
void e2b_volume_change(struct api_call *c);
void e2b_volume_remove(struct api_call *c);
void e2b_volume_dir(struct api_call *c);
void e2b_volume_make_dir(struct api_call *c);
void e2b_volume_read(struct api_call *c);
void e2b_volume_write(struct api_call *c);
/* volumes.c */
void e2b_team_list(struct api_call *c);
void e2b_missing(struct api_call *c);
/* templates.c, template_*.c */
void e2b_template_list(struct api_call *c);
void e2b_template_get(struct api_call *c);
void e2b_template_alias(struct api_call *c);
void e2b_template_patch(struct api_call *c);
void e2b_template_delete(struct api_call *c);
void e2b_tags_put(struct api_call *c);
void e2b_tags_delete(struct api_call *c);
void e2b_tags_list(struct api_call *c);
void e2b_file_link(struct api_call *c);
void e2b_file_put(struct api_call *c);
void e2b_build_request(struct api_call *c);
void e2b_build_start(struct api_call *c);
void e2b_build_status(struct api_call *c);
void e2b_build_logs(struct api_call *c);
/* health.c */
void e2b_envd_health(struct api_call *c);
/* filesystem.c */
void e2b_stat(struct api_call *c);
void e2b_make_dir(struct api_call *c);
void e2b_move(struct api_call *c);
void e2b_remove(struct api_call *c);
void e2b_list_dir(struct api_call *c);
/* filesystem_watch.c */
void e2b_watch_dir(struct api_call *c);
void e2b_create_watcher(struct api_call *c);
void e2b_get_watcher_events(struct api_call *c);
void e2b_remove_watcher(struct api_call *c);
/* envd_files.c, envd_upload.c */
void e2b_files_get(struct api_call *c);
void e2b_files_post(struct api_call *c);
/* envd_info.c */
void e2b_envs(struct api_call *c);
void e2b_envd_metrics(struct api_call *c);
void e2b_files_compose(struct api_call *c);
