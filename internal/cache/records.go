package cache

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// Kinds of records, and their format version. A record of another version is treated as
// damaged, because it is unknown which content it protects.
const (
	namesKind     = "names"
	usesKind      = "uses"
	recordVersion = 1
)

// nameRecord maps a name to content.
type nameRecord struct {
	Version int        `json:"version"`
	Name    string     `json:"name"`
	Digest  oci.Digest `json:"digest"`
	// Parts are all blobs that are needed to read the package.
	Parts []oci.Digest `json:"parts"`
	Added time.Time    `json:"added"`
}

// useRecord lists the content that an owner needs.
type useRecord struct {
	Version int          `json:"version"`
	Owner   string       `json:"owner"`
	Roots   []oci.Digest `json:"roots"`
	// User is the name of the owner for people. It may be empty.
	User string `json:"user,omitempty"`
}

// name returns the name of the owner for people, or the owner.
func (u useRecord) name() string { return cmp.Or(u.User, u.Owner) }

func encodeRecord(kind, name string, value any) (store.Record, error) {
	data, err := json.Marshal(value)
	return store.Record{Kind: kind, Name: name, Data: append(data, '\n')}, err
}

func decodeName(r store.Record) (nameRecord, error) {
	var n nameRecord
	err := json.Unmarshal(r.Data, &n)
	if err == nil && (n.Version != recordVersion || n.Digest.IsZero()) {
		err = fmt.Errorf("it is of version %d", n.Version)
	}
	if err != nil {
		return n, ErrDamagedRecord.New(err, "a name record of the package cache cannot be read")
	}
	return n, nil
}

func decodeUse(r store.Record) (useRecord, error) {
	var u useRecord
	err := json.Unmarshal(r.Data, &u)
	if err == nil && u.Version != recordVersion {
		err = fmt.Errorf("it is of version %d", u.Version)
	}
	if err != nil {
		return u, ErrDamagedRecord.New(err, "a use record of the package cache cannot be read")
	}
	return u, nil
}

// names returns the name records, ordered by name.
func (c *Cache) names(ctx context.Context) ([]nameRecord, error) {
	return readRecords(
		ctx, c.store, namesKind, decodeName, func(a, b nameRecord) int { return cmp.Compare(a.Name, b.Name) },
	)
}

// uses returns the use records, ordered by owner.
func (c *Cache) uses(ctx context.Context) ([]useRecord, error) {
	return readRecords(
		ctx, c.store, usesKind, decodeUse, func(a, b useRecord) int { return cmp.Compare(a.Owner, b.Owner) },
	)
}

func readRecords[T any](
	ctx context.Context, s *store.Store, kind string, decode func(store.Record) (T, error), order func(a, b T) int,
) ([]T, error) {
	records, err := s.Records(ctx, kind)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(records))
	for i, r := range records {
		if all[i], err = decode(r); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, order)
	return all, nil
}

// Forget deletes the records of owners, which can be named by [Options].User too. It returns the names without a
// record, and deletes nothing if there are any.
func (c *Cache) Forget(ctx context.Context, names ...string) (unknown []string, err error) {
	uses, err := c.uses(ctx)
	if err != nil {
		return nil, err
	}
	var owners []string
	for _, name := range names {
		known := len(owners)
		for _, u := range uses {
			if u.Owner == name || u.name() == name {
				owners = append(owners, u.Owner)
			}
		}
		if len(owners) == known {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return unknown, nil
	}
	for _, owner := range owners {
		if err := c.Use(owner, nil); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Use records the content that the packages of an owner need. The owner is a control
// plane with a unique name. The record replaces the previous one of that owner, and is
// effective for all processes until it is replaced; without roots it is deleted. The
// roots need not be in the cache yet. The manifests and layers of roots stay in the
// cache; data derived from them is removed only if there is no other space for content.
func (c *Cache) Use(owner string, roots []oci.Digest) error {
	ctx := context.Background()
	sorted := slices.SortedFunc(slices.Values(roots), oci.Digest.Compare)
	record, err := encodeRecord(usesKind, owner, useRecord{recordVersion, owner, slices.Compact(sorted), c.user})
	if err != nil {
		return err
	}
	return c.store.Exclusive(ctx, func() error {
		if len(roots) == 0 {
			return c.store.RemoveRecord(record)
		}
		if kept, err := c.store.GetRecord(ctx, usesKind, owner); err == nil && slices.Equal(kept.Data, record.Data) {
			return nil
		}
		return c.store.PutRecord(record)
	})
}
