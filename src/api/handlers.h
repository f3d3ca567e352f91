/* Every handler, for the table of routes. Each answers its call, now or later. */
#pragma once

struct api_call;

/* health.c */
void api_healthz(struct api_call *c);
void api_readyz(struct api_call *c);
void api_health(struct api_call *c);
void api_metrics(struct api_call *c);
/* openapi.c */
void api_openapi(struct api_call *c);
/* sandbox_usage.c */
void api_sandbox_usage(struct api_call *c);
/* skills.c */
void api_skill_list(struct api_call *c);
void api_skill_get(struct api_call *c);
/* profiles.c */
void api_profile_list(struct api_call *c);
void api_profile_get(struct api_call *c);
/* pool.c */
void api_pool(struct api_call *c);
/* snapshots.c */
void api_snapshot_create(struct api_call *c);
void api_snapshot_list(struct api_call *c);
void api_snapshot_get(struct api_call *c);
void api_snapshot_delete(struct api_call *c);
void api_sandbox_fork(struct api_call *c);
/* volumes.c */
void api_volume_create(struct api_call *c);
void api_volume_list(struct api_call *c);
void api_volume_get(struct api_call *c);
void api_volume_delete(struct api_call *c);
/* builds.c */
void api_build_create(struct api_call *c);
void api_build_list(struct api_call *c);
void api_build_get(struct api_call *c);
void api_build_delete(struct api_call *c);
void api_build_cache_delete(struct api_call *c);
/* build_events.c */
void api_build_events(struct api_call *c);
/* build_files.c */
void api_build_file_get(struct api_call *c);
void api_build_file_put(struct api_call *c);
/* templates.c */
struct body_traits;
struct template_traits;
/* False after 400. Borrowed from the body and the request's memory. */
bool api_template_traits(struct api_call *c, const struct body_traits *body,
			 struct template_traits *ret);
void api_alias_put(struct api_call *c);
void api_alias_list(struct api_call *c);
void api_alias_delete(struct api_call *c);
void api_template_create(struct api_call *c);
void api_template_list(struct api_call *c);
void api_template_get(struct api_call *c);
void api_template_delete(struct api_call *c);
void api_runtime_list(struct api_call *c);
void api_runtime_get(struct api_call *c);
/* webhooks.c */
void api_webhook_create(struct api_call *c);
void api_webhook_list(struct api_call *c);
void api_webhook_get(struct api_call *c);
void api_webhook_patch(struct api_call *c);
void api_webhook_delete(struct api_call *c);
void api_webhook_test(struct api_call *c);
void api_webhook_deliveries(struct api_call *c);
/* tools.c */
void api_tool_servers(struct api_call *c);
void api_tool_list(struct api_call *c);
void api_tool_call(struct api_call *c);
void api_approval_list(struct api_call *c);
void api_approval_decide(struct api_call *c);
/* tool_login.c */
void api_tool_login(struct api_call *c);
void api_tool_login_finish(struct api_call *c);
void api_tool_logout(struct api_call *c);
/* warmpools.c */
void api_warmpool_create(struct api_call *c);
void api_warmpool_list(struct api_call *c);
void api_warmpool_get(struct api_call *c);
void api_warmpool_patch(struct api_call *c);
void api_warmpool_delete(struct api_call *c);
void api_warmpool_status(struct api_call *c);
/* audit.c, events.c */
void api_audit(struct api_call *c);
void api_events(struct api_call *c);
void api_security_events(struct api_call *c);
/* usage.c */
void api_usage(struct api_call *c);
/* keys.c, key_list.c */
void api_key_create(struct api_call *c);
void api_token_create(struct api_call *c);
void api_key_list(struct api_call *c);
void api_key_revoke(struct api_call *c);
/* users.c, user_json.c */
void api_user(struct api_call *c);
void api_user_create(struct api_call *c);
void api_user_list(struct api_call *c);
void api_user_get(struct api_call *c);
void api_user_patch(struct api_call *c);
void api_user_delete(struct api_call *c);
/* sandboxes.c */
void api_sandbox_create(struct api_call *c);
void api_sandbox_list(struct api_call *c);
void api_sandbox_get(struct api_call *c);
void api_sandbox_status(struct api_call *c);
void api_sandbox_patch(struct api_call *c);
void api_sandbox_delete(struct api_call *c);
void api_sandbox_pause(struct api_call *c);
void api_sandbox_resume(struct api_call *c);
void api_sandbox_stop(struct api_call *c);
void api_sandbox_start(struct api_call *c);
/* executions.c */
void api_exec_start(struct api_call *c);
void api_exec_list(struct api_call *c);
void api_exec_get(struct api_call *c);
/* exec_output.c */
void api_exec_output(struct api_call *c);
/* exec_control.c */
void api_exec_stdin(struct api_call *c);
void api_exec_signal(struct api_call *c);
void api_exec_cancel(struct api_call *c);
void api_exec_wait(struct api_call *c);
void api_exec_resize(struct api_call *c);
/* contexts.c, context_runs.c */
void api_context_create(struct api_call *c);
void api_context_list(struct api_call *c);
void api_context_get(struct api_call *c);
void api_context_delete(struct api_call *c);
void api_context_run(struct api_call *c);
void api_context_interrupt(struct api_call *c);
void api_context_restart(struct api_call *c);
void api_session_create(struct api_call *c);
void api_session_list(struct api_call *c);
/* files.c, file_list.c, file_get.c, file_put.c, archive.c, watch.c */
void api_file_list(struct api_call *c);
void api_file_get(struct api_call *c);
void api_file_put(struct api_call *c);
void api_file_delete(struct api_call *c);
void api_file_change(struct api_call *c);
void api_watch(struct api_call *c);
void api_archive_get(struct api_call *c);
void api_archive_put(struct api_call *c);
/* file_list.c, search.c, bundle.c */
void api_find(struct api_call *c);
void api_grep(struct api_call *c);
void api_replace(struct api_call *c);
void api_bundle_get(struct api_call *c);
void api_bundle_put(struct api_call *c);
/* packages.c */
void api_packages_install(struct api_call *c);
void api_packages_list(struct api_call *c);
/* ports.c, proxy_door.c */
void api_port_expose(struct api_call *c);
void api_port_list(struct api_call *c);
void api_port_get(struct api_call *c);
void api_port_close(struct api_call *c);
void api_port_proxy(struct api_call *c);
void api_port_tcp(struct api_call *c);
/* pty.c, stream.c */
void api_pty(struct api_call *c);
void api_stream(struct api_call *c);
/* sessions.c */
void api_agent_session_create(struct api_call *c);
void api_agent_session_list(struct api_call *c);
void api_agent_session_get(struct api_call *c);
void api_agent_session_delete(struct api_call *c);
void api_agent_session_provision(struct api_call *c);
void api_agent_session_sandbox(struct api_call *c);
