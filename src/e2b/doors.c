#include "api/door.h"
#include "e2b/e2b.h"
#include "e2b/handlers.h"
#include "e2b/refuse.h"
#include "e2b/routes.h"
#include "e2b/target.h"
#include "e2b/volume_content.h"

static const struct api_door envd = {
	.name = "envd",
	.table = &e2b_envd_table,
	.claims = e2b_claims_envd,
	.authenticate = e2b_authenticate,
	.refuse = e2b_refuse_envd,
};

static const struct api_door code = {
	.name = "code",
	.table = &e2b_code_table,
	.claims = e2b_claims_code,
	.authenticate = e2b_authenticate,
	.refuse = e2b_refuse_text,
};

static const struct api_door port = {
	.name = "port",
	.claims = e2b_claims_port,
	.refuse = e2b_refuse_port,
	.other = e2b_port,
};

static const struct api_door volume = {
	.name = "volume",
	.table = &e2b_volume_table,
	.claims = e2b_claims_volume,
	.authenticate = e2b_authenticate_volume,
	.refuse = e2b_refuse_rest,
};

const struct api_door e2b_control_door = {
	.name = "control",
	.table = &e2b_control_table,
	.claims = e2b_claims_control,
	.refuse = e2b_refuse_rest,
};

const struct api_door *const e2b_doors[] = { &envd, &code, &port, &volume, NULL };
