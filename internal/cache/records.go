package cache

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/internal/oci"
)

// The kinds of records, and the version that they are written in. A record of
// another version is damaged: nobody can say what it protects.
const (
	namesKind     = "names"
	usesKind      = "uses"
	recordVersion = 1
)

// nameRecord gives content a name.
type nameRecord struct {
	Version int        `json:"version"`
	Name    string     `json:"name"`
	Digest  oci.Digest `json:"digest"`
	// Parts are all blobs that are needed to read the package.
	Parts []oci.Digest `json:"parts"`
	Added time.Time    `json:"added"`
}

// useRecord says what an owner needs.
type useRecord struct {
	Version int          `json:"version"`
	Owner   string       `json:"owner"`
	Roots   []oci.Digest `json:"roots"`
}

func encodeRecord(kind, name string, value any) (oci.Record, error) {
	data, err := json.Marshal(value)
	return oci.Record{Kind: kind, Name: name, Data: append(data, '\n')}, err
}

func decodeName(r oci.Record) (nameRecord, error) {
	var n nameRecord
	err := json.Unmarshal(r.Data, &n)
	if err == nil && (n.Version != recordVersion || n.Digest.IsZero()) {
		err = fmt.Errorf("it is of version %d", n.Version)
	}
	if err != nil {
		return n, ErrDamagedRecord.New(err, "a name in the package cache cannot be read")
	}
	return n, nil
}

func decodeUse(r oci.Record) (useRecord, error) {
	var u useRecord
	err := json.Unmarshal(r.Data, &u)
	if err == nil && u.Version != recordVersion {
		err = fmt.Errorf("it is of version %d", u.Version)
	}
	if err != nil {
		return u, ErrDamagedRecord.New(err, "what a control plane needs of the package cache cannot be read")
	}
	return u, nil
}

// names gives everything that was added by name, in the order of the names.
func (c *Cache) names(ctx context.Context) ([]nameRecord, error) {
	return readRecords(ctx, c.store, namesKind, decodeName, func(a, b nameRecord) int { return cmp.Compare(a.Name, b.Name) })
}

// uses gives what every owner needs, in the order of the owners.
func (c *Cache) uses(ctx context.Context) ([]useRecord, error) {
	return readRecords(ctx, c.store, usesKind, decodeUse, func(a, b useRecord) int { return cmp.Compare(a.Owner, b.Owner) })
}

func readRecords[T any](ctx context.Context, s *oci.Store, kind string, decode func(oci.Record) (T, error), order func(a, b T) int) ([]T, error) {
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

// Use says which content the packages of an owner need: a control plane, under a
// name of its own. It takes the place of what was said for that owner before, and
// holds, for all processes, until something else is said; without roots the owner
// needs nothing any more. The roots need not be in the cache yet. The manifests
// and layers of roots stay in the cache; what was derived from them goes only when
// there is no other room for content.
func (c *Cache) Use(owner string, roots []oci.Digest) error {
	ctx := context.Background()
	sorted := slices.SortedFunc(slices.Values(roots), oci.Digest.Compare)
	record, err := encodeRecord(usesKind, owner, useRecord{recordVersion, owner, slices.Compact(sorted)})
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
