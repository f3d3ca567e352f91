#include "daemon/greet.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

void greet(const char *listen, int port, bool is_tls, const char *first_key)
{
	const char *scheme = is_tls ? "https" : "http";
	const char *colon = strrchr(listen, ':');
	int host = colon ? (int)(colon - listen) : 0;
	char url[300];

	if (strncmp(listen, "unix:", 5) == 0)
		(void)str_format(url, sizeof(url), "%s", listen);
	else
		(void)str_format(url, sizeof(url), "%s://%.*s:%d", scheme, host ? host : 9,
				 host ? listen : "127.0.0.1", port);
	(void)printf("holt %s listens on %s\n", HOLT_VERSION, url);
	if (first_key[0])
		(void)printf(
			"\nThis is the admin key. It is shown this once; only its hash is kept.\n\n"
			"  export HOLT_API_KEY=%s\n\nThen try:\n\n"
			"  ID=$(curl -s -X POST %s/api/v1/sandboxes \\\n"
			"    -H \"Authorization: Bearer $HOLT_API_KEY\" | sed "
			"'s/.*\"id\":\"\\([a-z0-9]*\\)\".*/\\1/')\n"
			"  curl -s %s/api/v1/sandboxes/$ID/execute \\\n"
			"    -H \"Authorization: Bearer $HOLT_API_KEY\" -H 'Content-Type: "
			"application/json' \\\n"
			"    -d "
			"'{\"type\":\"code\",\"language\":\"python\",\"content\":\"print(6*7)\"}'"
			"\n\n",
			first_key, url, url);
	(void)fflush(stdout);
}
