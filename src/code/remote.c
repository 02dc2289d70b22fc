/* SPDX-License-Identifier: Apache-2.0 */
#include "code/remote.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* The last '@' of the part that names user and host, n bytes long: a password may have one itself.
 * One with a '/' in it makes that part end too early, which a port that is no number gives away. */
static const char *end_of_user(const char *from, size_t n, bool has_scheme) {
    const char *at = memrchr(from, '@', n), *port = memrchr(from, ':', n);

    if (at || !has_scheme || !port)
        return at;
    port++;
    return strspn(port, "0123456789") < (size_t)(from + n - port) ? strrchr(from, '@') : NULL;
}

const char *remote_clean(const char *address, struct arena *arena) {
    const char *scheme_end = strstr(address, "://");
    const char *host = scheme_end ? scheme_end + 3 : address;
    /* Without a scheme it is user@host:path, or a path; only the former has a ':' to end it. */
    const size_t n = strcspn(host, scheme_end ? "/?#" : "/");
    const char *at = end_of_user(host, n, scheme_end != NULL), *colon;
    const bool is_web = scheme_end && strncasecmp(address, "http", 4) == 0;
    const char *rest = at ? at : host;
    const size_t tail = (size_t)(rest - host) + (is_web ? strcspn(rest, "?#") : strlen(rest));

    if (!at)
        return arena_text(arena, address, (size_t)(host - address) + tail);
    colon = memchr(host, ':', (size_t)(at - host));
    if (is_web)
        return arena_printf(arena, "%.*s%.*s", (int)(host - address), address,
                            (int)(host + tail - (at + 1)), at + 1);
    if (!colon)
        return arena_text(arena, address, strlen(address));
    return arena_printf(arena, "%.*s%s", (int)(colon - address), address, at);
}
