package state

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/sharedread"
)

// listTimeout limits the duration of one list.
const listTimeout = time.Minute

const (
	// coverage is the age up to which a list shows that a package that was created before it had no revisions then.
	coverage = 10 * time.Second
	// created is the time for which LiveRevisions remembers that a revision of a package was created: longer than a list
	// that began before is used.
	created = 2 * coverage
)

// LiveRevisions lists the revisions of packages from the API server.
//
// An API server reads all revisions of a kind to list the revisions of one package. So concurrent
// callers share lists: a caller gets the result of a list that begins after its call.
type LiveRevisions struct {
	Reader client.Reader

	mu    sync.Mutex
	lists map[string]*sharedread.Read[liveList]
	// created are the times of the last creation of a revision, by the UID of the package.
	created map[types.UID]time.Time
}

// liveList is a list of all revisions of a kind.
type liveList struct {
	// version is the resourceVersion of the list.
	version   string
	revisions []v1.PackageRevision
}

// of returns copies of the revisions of a package.
func (l liveList) of(p v1.Package) []v1.PackageRevision {
	var out []v1.PackageRevision
	for _, rev := range l.revisions {
		if rev.GetLabels()[v1.LabelPackage] == p.GetName() {
			out = append(out, rev.DeepCopyObject().(v1.PackageRevision))
		}
	}
	return out
}

// Of returns copies of the revisions of a package, as the API server had them after the call.
func (l *LiveRevisions) Of(ctx context.Context, p v1.Package) ([]v1.PackageRevision, error) {
	kind := p.PackageKind()
	all, err := l.listOf(kind).Get(ctx, 0, func(ctx context.Context) (liveList, error) {
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		list := v1.NewPackage(kind).NewRevisionList()
		err := l.Reader.List(ctx, list)
		return liveList{list.GetResourceVersion(), list.Revisions()}, err
	})
	if err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	return all.of(p), nil
}

// IsNew reports, without a call, whether a package had no revisions when it was created. It does so from the last list
// if that is as recent as the package: packages that are created at once then need few lists. A revision that is
// created later than the package is found by its watch. IsNew returns false for a package whose revision this process
// has just created.
func (l *LiveRevisions) IsNew(p v1.Package) bool {
	list, ok := l.listOf(p.PackageKind()).Last(coverage)
	if !ok || len(list.of(p)) > 0 {
		return false
	}
	l.mu.Lock()
	at, wasCreated := l.created[p.GetUID()]
	l.mu.Unlock()
	order, err := resourceversion.CompareResourceVersion(p.GetResourceVersion(), list.version)
	return err == nil && order <= 0 && (!wasCreated || time.Since(at) > created)
}

// Created records that this process creates a revision of a package. It is called before and after the call to the API
// server.
func (l *LiveRevisions) Created(p v1.Package) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.created == nil {
		l.created = map[types.UID]time.Time{}
	}
	maps.DeleteFunc(l.created, func(_ types.UID, at time.Time) bool { return time.Since(at) > created })
	l.created[p.GetUID()] = time.Now()
}

// listOf returns the shared list of a kind.
func (l *LiveRevisions) listOf(kind string) *sharedread.Read[liveList] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lists[kind] == nil {
		if l.lists == nil {
			l.lists = map[string]*sharedread.Read[liveList]{}
		}
		l.lists[kind] = &sharedread.Read[liveList]{}
	}
	return l.lists[kind]
}
