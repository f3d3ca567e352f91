/* The query parameters of E2B's calls: see api/queries.h. */
#pragma once

#include "api/queries.h"

extern const struct route_query e2b_query_sandboxes[], e2b_query_metadata[], e2b_query_metrics[],
	e2b_query_metrics_of[], e2b_query_logs[], e2b_query_logs_old[], e2b_query_snapshots[],
	e2b_query_secrets[];
