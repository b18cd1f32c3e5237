package state

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/sharedread"
)

// listTimeout limits the duration of one list.
const listTimeout = time.Minute

// LiveRevisions lists the revisions of packages from the API server.
//
// An API server reads all revisions of a kind to list the revisions of one package. So concurrent
// callers share lists: a caller gets the result of a list that begins after its call.
type LiveRevisions struct {
	Reader client.Reader

	mu    sync.Mutex
	lists map[string]*sharedread.Read[[]v1.PackageRevision]
}

// Of returns copies of the revisions of a package, as the API server had them after the call.
func (l *LiveRevisions) Of(ctx context.Context, p v1.Package) ([]v1.PackageRevision, error) {
	kind := p.PackageKind()
	all, err := l.listOf(kind).Get(ctx, 0, func(ctx context.Context) ([]v1.PackageRevision, error) {
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		list := v1.NewPackage(kind).NewRevisionList()
		err := l.Reader.List(ctx, list)
		return list.Revisions(), err
	})
	if err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	var out []v1.PackageRevision
	for _, rev := range all {
		if rev.GetLabels()[v1.LabelPackage] == p.GetName() {
			out = append(out, rev.DeepCopyObject().(v1.PackageRevision))
		}
	}
	return out, nil
}

// listOf returns the shared list of a kind.
func (l *LiveRevisions) listOf(kind string) *sharedread.Read[[]v1.PackageRevision] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lists[kind] == nil {
		if l.lists == nil {
			l.lists = map[string]*sharedread.Read[[]v1.PackageRevision]{}
		}
		l.lists[kind] = &sharedread.Read[[]v1.PackageRevision]{}
	}
	return l.lists[kind]
}
