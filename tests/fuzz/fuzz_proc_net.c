/* Lines of /proc/net/tcp as a hostile box could write them. What is taken has a port and an address
 * that can be read back. */
#include <arpa/inet.h>
#include <string.h>

#include "fuzz.h"
#include "guest/proc_net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str rest = { (const char *)data, n }, line;

	while (str_split(&rest, '\n', &line)) {
		struct proc_net_socket s;
		struct in6_addr to;

		if (proc_net_parse(line, &s) < 0)
			continue;
		MUST(s.port != 0);
		MUST(memchr(s.address, '\0', sizeof(s.address)));
		MUST(inet_pton(AF_INET, s.address, &to) == 1 ||
		     inet_pton(AF_INET6, s.address, &to) == 1);
	}
	return 0;
}
