#include "image/manifest.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/arena.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/str.h"
#include "json/jv.h"

#define DIGEST_PREFIX "sha256:"
#define BLOBS "blobs/sha256/"
#define TEXTS_MAX 512

const char *manifest_machine(void)
{
	static const struct {
		const char *kernel, *image;
	} names[] = {
		{ "x86_64", "amd64" },        { "aarch64", "arm64" },
		{ "armv7l", "arm" },          { "i686", "386" },
		{ "riscv64", "riscv64" },     { "ppc64le", "ppc64le" },
		{ "loongarch64", "loong64" },
	};
	struct utsname u;

	for (size_t i = 0; uname(&u) == 0 && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(u.machine, names[i].kernel) == 0)
			return names[i].image;
	return "";
}

static int parse(const void *json, size_t n, const char *what, struct jv_doc **ret, struct err *err)
{
	struct err why = { 0 };
	int r = jv_parse(json, n, MANIFEST_BYTES_MAX, ret, &why);

	return r < 0 ? err_set(err, -r, "image: %s: %.160s", what, why.text) : 0;
}

/* ---- blobs ---- */

static int read_digest(const char *text, uint8_t ret[HASH_LEN], struct err *err)
{
	const char *hex = text ? text + sizeof(DIGEST_PREFIX) - 1 : NULL;

	if (!text)
		return err_set(err, EINVAL, "image: a digest is missing");
	if (strncmp(text, DIGEST_PREFIX, sizeof(DIGEST_PREFIX) - 1) != 0)
		return err_set(err, ENOTSUP, "image: digest '%.40s': only sha256 is known", text);
	if (strlen(hex) != HASH_LEN * 2 || strspn(hex, "0123456789abcdef") != HASH_LEN * 2 ||
	    decode_hex(hex, HASH_LEN * 2, ret, HASH_LEN) != HASH_LEN)
		return err_set(err, EINVAL, "image: digest '%.80s' is malformed", text);
	return 0;
}

/* A descriptor of OCI's: the blob's name is its digest. */
static int read_descriptor(struct jv d, struct manifest_blob *ret, struct err *err)
{
	const char *digest = jv_text(jv_get(d, "digest"));
	int r = read_digest(digest, ret->digest, err);

	if (r < 0)
		return r;
	ret->has_digest = true;
	return str_format(ret->path, sizeof(ret->path), BLOBS "%s",
			  digest + sizeof(DIGEST_PREFIX) - 1);
}

/* A name in docker's manifest; where it is that of a blob, its bytes must have that digest. */
static int read_name(struct jv v, struct manifest_blob *ret, struct err *err)
{
	const char *name = jv_text(v);
	size_t n = name ? strlen(name) : 0;

	*ret = (struct manifest_blob){ 0 };
	if (n == 0 || n > MANIFEST_PATH_MAX)
		return err_set(err, EINVAL, "image: manifest.json: a name is missing or too long");
	(void)str_copy(ret->path, sizeof(ret->path), name);
	ret->has_digest = str_starts(str_of(name), BLOBS) &&
			  decode_hex(name + sizeof(BLOBS) - 1, n - (sizeof(BLOBS) - 1), ret->digest,
				     HASH_LEN) == HASH_LEN;
	return 0;
}

static int check_layers(struct jv layers, struct err *err)
{
	if (jv_kind(layers) != JV_ARRAY || jv_len(layers) == 0)
		return err_set(err, EINVAL, "image: it has no layers");
	if (jv_len(layers) > MANIFEST_LAYERS_MAX)
		return err_set(err, E2BIG, "image: %zu layers, limit %u", jv_len(layers),
			       MANIFEST_LAYERS_MAX);
	return 0;
}

/* ---- manifests ---- */

static int read_docker(struct jv root, struct manifest *ret, struct err *err)
{
	struct jv image = jv_at(root, 0), layers = jv_get(image, "Layers");
	int r;

	if (jv_kind(root) != JV_ARRAY || jv_kind(image) != JV_OBJECT)
		return err_set(err, EINVAL, "image: manifest.json: want a list of images");
	if (jv_len(root) != 1)
		return err_set(err, EINVAL, "image: the archive has %zu images: save one",
			       jv_len(root));
	r = read_name(jv_get(image, "Config"), &ret->config, err);
	if (r == 0)
		r = check_layers(layers, err);
	if (r < 0)
		return r;
	JV_FOREACH (layers, it) {
		r = read_name(it.value, &ret->layers[ret->n_layers++], err);
		if (r < 0)
			return r;
	}
	return 0;
}

int manifest_read_docker(const void *json, size_t n, struct manifest *ret, struct err *err)
{
	struct jv_doc *doc = NULL;
	int r = parse(json, n, "manifest.json", &doc, err);

	ret->n_layers = 0;
	if (r == 0)
		r = read_docker(jv_root(doc), ret, err);
	(void)jv_free(doc);
	return r;
}

static bool is_text(struct jv v, const char *text)
{
	const char *s = jv_text(v);

	return s && strcmp(s, text) == 0;
}

/* Not an image at all: a statement about one. */
static bool is_statement(struct jv d)
{
	return jv_kind(jv_get(jv_get(d, "annotations"), "vnd.docker.reference.type")) == JV_STRING;
}

static bool is_for(struct jv d, const char *machine)
{
	struct jv p = jv_get(d, "platform");

	if (is_statement(d))
		return false;
	return jv_kind(p) == JV_ABSENT ||
	       (is_text(jv_get(p, "os"), "linux") && is_text(jv_get(p, "architecture"), machine));
}

static bool is_index(struct jv d)
{
	return is_text(jv_get(d, "mediaType"), "application/vnd.oci.image.index.v1+json") ||
	       is_text(jv_get(d, "mediaType"),
		       "application/vnd.docker.distribution.manifest.list.v2+json");
}

static int read_index(struct jv root, const char *machine, struct manifest_blob *ret,
		      bool *ret_is_index, struct err *err)
{
	struct jv list = jv_get(root, "manifests"), found = { NULL };
	size_t n = 0;

	if (jv_kind(list) != JV_ARRAY || jv_len(list) > MANIFEST_INDEX_MAX)
		return err_set(err, EINVAL, "image: index.json: want a list of up to %u manifests",
			       MANIFEST_INDEX_MAX);
	JV_FOREACH (list, it)
		if (is_for(it.value, machine)) {
			found = it.value;
			n++;
		}
	if (n == 0)
		return err_set(err, EINVAL, "image: none in the archive is for linux/%s", machine);
	if (n > 1)
		return err_set(err, EINVAL, "image: the archive has %zu images: save one", n);
	*ret_is_index = is_index(found);
	return read_descriptor(found, ret, err);
}

int manifest_read_index(const void *json, size_t n, const char *machine, struct manifest_blob *ret,
			bool *ret_is_index, struct err *err)
{
	struct jv_doc *doc = NULL;
	int r = parse(json, n, "index.json", &doc, err);

	if (r == 0)
		r = read_index(jv_root(doc), machine, ret, ret_is_index, err);
	(void)jv_free(doc);
	return r;
}

static int read_oci(struct jv root, struct manifest *ret, struct err *err)
{
	struct jv layers = jv_get(root, "layers");
	int r = read_descriptor(jv_get(root, "config"), &ret->config, err);

	if (r == 0)
		r = check_layers(layers, err);
	if (r < 0)
		return r;
	JV_FOREACH (layers, it) {
		r = read_descriptor(it.value, &ret->layers[ret->n_layers++], err);
		if (r < 0)
			return r;
	}
	return 0;
}

int manifest_read_oci(const void *json, size_t n, struct manifest *ret, struct err *err)
{
	struct jv_doc *doc = NULL;
	int r = parse(json, n, "the manifest", &doc, err);

	ret->n_layers = 0;
	if (r == 0)
		r = read_oci(jv_root(doc), ret, err);
	(void)jv_free(doc);
	return r;
}

/* ---- the configuration ---- */

static const struct jv_field config_fields[] = {
	JV_FIELD("User", STRING, struct image_config, user, .flags = JV_NULLABLE, .max = 255),
	JV_FIELD("WorkingDir", STRING, struct image_config, workdir, .flags = JV_NULLABLE),
	JV_FIELD("Env", STRINGS, struct image_config, env, .flags = JV_NULLABLE, .max = TEXTS_MAX,
		 .text_max = 32768),
	JV_FIELD("Entrypoint", STRINGS, struct image_config, entrypoint, .flags = JV_NULLABLE,
		 .max = TEXTS_MAX, .text_max = 32768),
	JV_FIELD("Cmd", STRINGS, struct image_config, cmd, .flags = JV_NULLABLE, .max = TEXTS_MAX,
		 .text_max = 32768),
};

/* Absent is no contradiction; an empty name neither. */
static bool differs(struct jv v, const char *want)
{
	const char *s = jv_text(v);

	return s && s[0] != '\0' && strcmp(s, want) != 0;
}

static int read_rootfs(struct jv ids, struct manifest_rootfs *ret, struct err *err)
{
	int r = 0;

	ret->n = 0;
	if (jv_kind(ids) != JV_ARRAY || jv_len(ids) > MANIFEST_LAYERS_MAX)
		return err_set(err, EINVAL, "image: its configuration names no layers");
	JV_FOREACH (ids, it) {
		r = read_digest(jv_text(it.value), ret->diff_ids[ret->n++], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_config(struct jv root, const char *machine, struct arena *arena,
		       struct image_config *ret, struct err *err)
{
	struct jv config = jv_get(root, "config");
	struct jv_problem problem = { 0 };
	int r = 0;

	*ret = (struct image_config){ .user = "", .workdir = "" };
	if (differs(jv_get(root, "os"), "linux") || differs(jv_get(root, "architecture"), machine))
		return err_set(err, EINVAL, "image: it is for %.20s/%.20s, not for linux/%s",
			       jv_text(jv_get(root, "os")) ? jv_text(jv_get(root, "os")) : "",
			       jv_text(jv_get(root, "architecture"))
				       ? jv_text(jv_get(root, "architecture"))
				       : "",
			       machine);
	if (jv_kind(config) == JV_OBJECT)
		r = jv_decode_known(config, config_fields,
				    sizeof(config_fields) / sizeof(config_fields[0]), arena, ret,
				    &problem);
	return r < 0 ? err_set(err, -r, "image: config.%s: %s", problem.field, problem.text) : 0;
}

int manifest_read_config(const void *json, size_t n, const char *machine, struct arena *arena,
			 struct image_config *ret, struct manifest_rootfs *ret_rootfs,
			 struct err *err)
{
	struct jv_doc *doc = NULL;
	int r = parse(json, n, "its configuration", &doc, err);

	if (r == 0)
		r = read_config(jv_root(doc), machine, arena, ret, err);
	if (r == 0)
		r = read_rootfs(jv_get(jv_get(jv_root(doc), "rootfs"), "diff_ids"), ret_rootfs,
				err);
	(void)jv_free(doc);
	return r;
}
