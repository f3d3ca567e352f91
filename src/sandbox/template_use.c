/* From a template's name to what the launcher is told. */
#include <errno.h>

#include "base/err.h"
#include "sandbox/pool.h"
#include "sandbox/recipe.h"
#include "sandbox/slot.h"
#include "sandbox/template.h"

int template_recipe(struct sandboxes *all, const char *name, struct recipe *ret, struct err *err)
{
	const struct template_row *t = template_find(name);

	(void)all;
	if (!t)
		return err_set(err, EINVAL, "template: there is no '%.60s'", name);
	*ret = (struct recipe){ .root = ROOT_HOST, .flags = t->flags };
	return 0;
}

int template_slot(struct sandboxes *all, const char *name, uint32_t strict, uint32_t *ret,
		  struct err *err)
{
	const struct pool *p = pool_of_template(all, name);
	struct recipe recipe;
	int r;

	if (p && p->slot > 0 && strict == 0) {
		*ret = slot_again(all, p->slot);
		return 0;
	}
	r = template_recipe(all, name, &recipe, err);
	if (r < 0)
		return r;
	recipe.flags |= strict;
	return slot_hold(all, &recipe, ret, err);
}
