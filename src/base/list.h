/* Intrusive doubly linked list: the node lives in the object, the head in its owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define LIST_INIT(name) ((struct list){ &(name), &(name) })
#define LIST_ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))
/* The current entry may be removed (and freed) in the body; others may not. */
#define LIST_FOREACH(head, it, type, member)                                                   \
	for (struct list *it##_n_ = (head)->next, *it##_m_ = it##_n_->next; it##_n_ != (head); \
	     it##_n_ = it##_m_, it##_m_ = it##_n_->next)                                       \
		for (type *it = LIST_ENTRY(it##_n_, type, member); it; it = NULL)

static inline void list_init(struct list *head)
{
	head->next = head->prev = head;
}

static inline bool list_is_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_push_back(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void list_push_front(struct list *head, struct list *node)
{
	list_push_back(head->next, node);
}

/* The node is self-linked afterwards: removing twice is harmless. */
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}
