package state

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// listTimeout limits the duration of one list.
const listTimeout = time.Minute

// LiveRevisions lists the revisions of packages from the API server.
//
// An API server reads all revisions of a kind to list the revisions of one package. So concurrent
// callers share lists: a caller gets the result of the first list that begins after its call.
type LiveRevisions struct {
	Reader client.Reader

	mu sync.Mutex
	// waiting has the next list of each kind, and running the one in progress.
	waiting, running map[string]*sharedList
}

type sharedList struct {
	done      chan struct{}
	revisions []v1.PackageRevision
	err       error
}

// Of returns copies of the revisions of a package, as the API server had them after the call.
func (l *LiveRevisions) Of(ctx context.Context, p v1.Package) ([]v1.PackageRevision, error) {
	all, err := l.list(ctx, p.PackageKind())
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

// list returns all revisions of a kind. The caller must not change them.
func (l *LiveRevisions) list(ctx context.Context, kind string) ([]v1.PackageRevision, error) {
	shared := l.join(ctx, kind)
	select {
	case <-shared.done:
		return shared.revisions, shared.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *LiveRevisions) join(ctx context.Context, kind string) *sharedList {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting, l.running = map[string]*sharedList{}, map[string]*sharedList{}
	}
	next, previous := l.waiting[kind], l.running[kind]
	if next == nil {
		next = &sharedList{done: make(chan struct{})}
		l.waiting[kind] = next
		// The list must continue after the context of this caller ends, because others may wait for
		// it.
		go l.run(context.WithoutCancel(ctx), kind, next, previous)
	}
	return next
}

func (l *LiveRevisions) run(ctx context.Context, kind string, next, previous *sharedList) {
	if previous != nil {
		<-previous.done
	}
	l.mu.Lock()
	delete(l.waiting, kind)
	l.running[kind] = next
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	all := v1.NewPackage(kind).NewRevisionList()
	if next.err = l.Reader.List(ctx, all); next.err == nil {
		next.revisions = all.Revisions()
	}
	l.mu.Lock()
	if l.running[kind] == next {
		delete(l.running, kind)
	}
	l.mu.Unlock()
	close(next.done)
}
