package content

import (
	"context"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/sharedread"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// highestPriority is the highest priority of an index that a user can set. A candidate with the priority 0 comes first.
const highestPriority = 1000

// OpenIndexes returns the sources of indexes, whose locations are those of [KindIndexFlag].
func OpenIndexes(ctx context.Context, client *indexer.Client, locations []string) ([]provide.Source, error) {
	var out []provide.Source
	for _, text := range locations {
		ref, location, priority, err := ParseIndex(text)
		if err != nil {
			return nil, err
		}
		reader, err := client.Open(ctx, ref)
		if err != nil {
			return nil, err
		}
		all, err := reader.Catalog()
		if err != nil {
			return nil, err
		}
		out = append(out, provide.Catalog{Catalog: &all, Name: location, Priority: highestPriority - priority})
	}
	return out, nil
}

// ParseIndex parses the location of an index, REF or REF,PRIORITY.
func ParseIndex(text string) (ref oci.Reference, location string, priority int, err error) {
	if location, priority, err = indexer.ParseLocation(text); err != nil {
		return oci.Reference{}, "", 0, err
	}
	ref, err = flags.ParseReference(location)
	return ref, location, priority, err
}

// RecentIndexes returns the sources of indexes for a long-running process.
type RecentIndexes struct {
	Client    *indexer.Client
	Locations []string
	// Key is read each time, so that keys can be replaced while the process runs.
	Key IndexKeyFlag

	opened sharedread.Read[[]provide.Source]
}

// Sources returns the sources of the indexes, in a state that is at most maxAge old, so that many objects cause few
// requests.
func (r *RecentIndexes) Sources(ctx context.Context, maxAge time.Duration) ([]provide.Source, error) {
	if len(r.Locations) == 0 {
		return nil, nil
	}
	return r.opened.Get(ctx, maxAge, func(ctx context.Context) (_ []provide.Source, err error) {
		if r.Client.Keys, err = r.Key.Keys(ctx); err != nil {
			return nil, err
		}
		return OpenIndexes(ctx, r.Client, r.Locations)
	})
}
