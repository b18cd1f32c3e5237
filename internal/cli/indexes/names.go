package indexes

import (
	"context"
	"io"
	"path"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// completedKinds is the maximum number of kinds that are completed.
const completedKinds = 200

// Names returns the packages and the kinds of indexes whose names begin with a word, for the completion of `xpkg show`.
// It uses the states that were fetched last. Without a word, it returns no kinds.
func Names(ctx context.Context, f Flags, word string) []string {
	var out []string
	f.withFetched(ctx, func(set indexer.Set) {
		for _, index := range set {
			for _, p := range index.Packages() {
				for _, name := range []string{p.Repository, path.Base(p.Repository)} {
					if strings.HasPrefix(name, word) && (word != "" || name != p.Repository) {
						out = append(out, name+"\t"+terminal.Safe(p.Repository))
					}
				}
			}
		}
		out = append(out, kindNames(set, word)...)
	})
	return out
}

// KindNames returns the kinds of indexes whose names begin with a word, as KIND.GROUP.
func KindNames(ctx context.Context, f Flags, word string) (out []string) {
	f.withFetched(ctx, func(set indexer.Set) { out = kindNames(set, word) })
	return out
}

func kindNames(set indexer.Set, word string) []string {
	var out []string
	add := func(k catalog.Kind) {
		if name := k.Kind + "." + k.Group; strings.HasPrefix(name, word) {
			out = append(out, name+"\t"+terminal.Safe(k.Repository))
		}
	}
	if kind, _, isQualified := strings.Cut(word, "."); isQualified {
		kinds, _ := set.Lookup("", kind) // Completion reports no errors.
		for _, k := range kinds {
			add(k)
		}
		return out
	}
	query, err := catalog.ParseQuery(word)
	if err != nil || query.Empty() {
		return nil
	}
	hits, _ := set.Search(query, completedKinds)
	for _, h := range hits {
		if h.Kind != nil {
			add(*h.Kind)
		}
	}
	return out
}

// withFetched calls do with the states of the indexes that were fetched last, if all of them are in the package cache.
func (f Flags) withFetched(ctx context.Context, do func(indexer.Set)) {
	if f.Offline = true; len(f.Index) == 0 || !f.Exists() {
		return
	}
	env := &terminal.Env{Context: ctx, Stdout: io.Discard, Stderr: io.Discard}
	_ = f.with(env, func(_ *access, set indexer.Set) error { // Completion reports no errors.
		do(set)
		return nil
	})
}
