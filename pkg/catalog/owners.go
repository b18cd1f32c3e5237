package catalog

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// A GroupOwner is the owner of an API group: the repository, or the prefix of repositories, whose packages may define
// its kinds. The operator of an index states it. Other packages can define kinds of the group, too, but are not
// selected for them without a user.
type GroupOwner struct {
	Group string `json:"group"`
	Owner string `json:"owner"`
}

// maxOwners limits the owners, so that the configuration keeps its limit with the longest names.
const maxOwners = 1500

// Covers reports whether a repository is the owner, or below it.
func (o GroupOwner) Covers(repository string) bool {
	rest, ok := strings.CutPrefix(repository, o.Owner)
	return ok && (rest == "" || rest[0] == '/')
}

// GroupOwner returns the owner of an API group, and false if the index states none.
func (c *Config) GroupOwner(group string) (GroupOwner, bool) {
	i, found := slices.BinarySearchFunc(
		c.Owners, group, func(o GroupOwner, group string) int { return cmp.Compare(o.Group, group) },
	)
	if !found {
		return GroupOwner{}, false
	}
	return c.Owners[i], true
}

// SortOwners returns the owners in the order of a configuration. It fails with ErrInvalidOwner for names that are not
// valid, for an API group with two owners, and for too many of them.
func SortOwners(owners []GroupOwner) ([]GroupOwner, error) {
	owners = slices.Clone(owners)
	slices.SortFunc(
		owners, func(a, b GroupOwner) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Owner, b.Owner)) },
	)
	owners = slices.Compact(owners)
	for _, o := range owners {
		if len(validation.IsDNS1123Subdomain(o.Group)) > 0 {
			return nil, ErrInvalidOwner.New(nil, "%.150q is not an API group", o.Group)
		}
	}
	return owners, checkOwners(owners)
}

// checkOwners fails with ErrInvalidOwner unless the owners are valid and sorted.
func checkOwners(owners []GroupOwner) error {
	if len(owners) > maxOwners {
		return ErrInvalidOwner.New(nil, "%d API groups have owners, at most %d are allowed", len(owners), maxOwners)
	}
	for i, o := range owners {
		switch {
		case !validGroup(o.Group):
			return ErrInvalidOwner.New(nil, "%.150q is not an API group", o.Group)
		case len(o.Owner) > maxName || !validRepository(o.Owner):
			return ErrInvalidOwner.New(nil, "the owner %.150q of %s is not the name of a repository", o.Owner, o.Group)
		case i > 0 && owners[i-1].Group == o.Group:
			return ErrInvalidOwner.New(nil, "%s has the owners %s and %s", o.Group, owners[i-1].Owner, o.Owner)
		case i > 0 && owners[i-1].Group > o.Group:
			return ErrInvalidOwner.New(nil, "the owners of API groups are not sorted")
		}
	}
	return nil
}

// uncontested returns the owners of the API groups of which no package outside of the owner has kinds.
func (c *Catalog) uncontested(owners []GroupOwner) []GroupOwner {
	of, contested := map[string]GroupOwner{}, map[string]bool{}
	for _, o := range owners {
		of[o.Group] = o
	}
	for i := range c.Kinds {
		k := &c.Kinds[i]
		if o, ok := of[k.Group]; ok && !o.Covers(k.Repository) {
			contested[k.Group] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(owners), func(o GroupOwner) bool { return contested[o.Group] })
}

// includeOwners adds the owners of another index for API groups that have none, as far as there is room.
func (c *Config) includeOwners(others []GroupOwner) {
	merged := slices.Clone(c.Owners)
	for _, o := range others {
		if _, known := c.GroupOwner(o.Group); !known && len(merged) < maxOwners {
			merged = append(merged, o)
		}
	}
	slices.SortFunc(merged, func(a, b GroupOwner) int { return cmp.Compare(a.Group, b.Group) })
	c.Owners = merged
}
