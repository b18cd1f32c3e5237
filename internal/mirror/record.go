package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// recordKind is the kind of the records of repositories.
const recordKind = "mirror"

// record states that a repository of the mirror has everything that the source has. The states are those of the
// registries ([remote.Client.RepositoryState]).
type record struct {
	Source, Target string
	// Versions is the digest of the versions in the index.
	Versions oci.Digest
}

// isKnown reports whether both registries state when the repository changes.
func (r record) isKnown() bool { return r.Source != "" && r.Target != "" }

// recordName returns the name of the record of a repository.
func recordName(r repository) string { return r.from.Name() + " " + r.to.Name() }

// recorded returns the record of a repository; zero if there is none. A damaged record is as none.
func (m *mirror) recorded(ctx context.Context, r repository) (found record) {
	if kept, err := m.Records.GetRecord(ctx, recordKind, recordName(r)); err != nil ||
		json.Unmarshal(kept.Data, &found) != nil {
		return record{}
	}
	return found
}

// current returns the record that a repository would get now.
func (m *mirror) current(ctx context.Context, r repository) (record, error) {
	versions, err := json.Marshal(r.Versions)
	if err != nil {
		return record{}, err
	}
	now := record{Versions: oci.DigestOf(versions)}
	var read readError
	if now.Source, err = m.Client.RepositoryState(ctx, r.from); errors.As(fromSource(err), &read) {
		return now, nil // The copy reports it.
	}
	if err == nil && now.Source != "" {
		now.Target, err = m.Client.RepositoryState(ctx, r.to)
	}
	if err != nil {
		return record{}, ErrMirror.New(err, "cannot read the state of %s", r.Repository)
	}
	return now, nil
}

// currents returns the records that repositories would get now, by name.
func (m *mirror) currents(ctx context.Context, repositories []repository) (map[string]record, error) {
	found := map[string]record{}
	if m.Records == nil {
		return found, nil
	}
	var mu sync.Mutex
	err := m.each(ctx, repositories, func(ctx context.Context, g *errgroup.Group, r repository) {
		g.Go(func() error {
			now, err := m.current(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			found[recordName(r)] = now
			return err
		})
	})
	return found, err
}

// changed returns the repositories that are not recorded as complete, or that have changed since.
func (m *mirror) changed(ctx context.Context, repositories []repository, now map[string]record) []repository {
	var changed []repository
	for _, r := range repositories {
		if is := now[recordName(r)]; m.Verify || !is.isKnown() || m.recorded(ctx, r) != is {
			changed = append(changed, r)
		}
	}
	return changed
}

// remember records the repositories in which a run could read everything and has found nothing to copy, and which have
// not changed meanwhile.
func (m *mirror) remember(ctx context.Context, compared []repository, before map[string]record) error {
	var same []repository
	for _, r := range compared {
		if before[recordName(r)].isKnown() && !m.packages[r.from.Name()] && m.isRead(r) {
			same = append(same, r)
		}
	}
	after, err := m.currents(ctx, same)
	if err != nil {
		return err
	}
	var errs []error
	for name, is := range after {
		if is != before[name] {
			continue
		}
		data, err := json.Marshal(is)
		if err == nil {
			err = m.Records.PutRecord(store.Record{Kind: recordKind, Name: name, Data: data})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
