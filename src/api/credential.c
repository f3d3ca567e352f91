#include "api/credential.h"

#include <string.h>
#include <strings.h>

#include "auth/api_key.h"
#include "auth/box_token.h"
#include "auth/jwt.h"
#include "auth/port_token.h"
#include "config/config.h"

#define BEARER "Bearer "

static const struct {
	const char *prefix;
	size_t n; /* characters behind it */
} forms[] = {
	{ "holt_", 2 * API_KEY_SECRET_LEN },
	{ "e2b_", 2 * API_KEY_SECRET_LEN },
	{ "port_", 2 * PORT_TOKEN_SECRET_LEN },
	{ "box_", BOX_TOKEN_SIZE - 1 },
};

static bool has_form(const char *text, const char *prefix, size_t n)
{
	for (; (text = strcasestr(text, prefix)); text++)
		if (strspn(text + strlen(prefix), "0123456789abcdefghijklmnopqrstuvwxyz"
						  "ABCDEFGHIJKLMNOPQRSTUVWXYZ") >= n)
			return true;
	return false;
}

bool credential_is_in(const struct config *config, const char *text)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (has_form(text, forms[i].prefix, forms[i].n))
			return true;
	if (!config->jwt_issuer)
		return false;
	if (strncasecmp(text, BEARER, strlen(BEARER)) == 0)
		text += strlen(BEARER);
	text += strspn(text, " ");
	return jwt_is_meant_for(text, config->jwt_issuer, config->jwt_audience);
}
