package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// revisions lists the revisions of p, as far as was watched.
func (w *world) revisions(ctx context.Context, p v1.Package) ([]v1.PackageRevision, error) {
	list := p.NewRevisionList()
	if err := w.client.List(ctx, list, client.MatchingLabels{v1.LabelPackage: p.GetName()}); err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	return list.Revisions(), nil
}

// revisionsNow lists the revisions of p as the API server has them at this moment.
func (w *world) revisionsNow(ctx context.Context, p v1.Package) ([]v1.PackageRevision, error) {
	all, err := w.lists.of(ctx, w.live, p.PackageKind())
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

// listLimit is how long one list may take.
const listLimit = time.Minute

// lists are those of all revisions of a kind. An API server reads all of them to give
// those of one package, so that many packages installed at once are answered with few
// lists: who asks while one is under way shares the next one, which begins after that.
type lists struct {
	mu sync.Mutex
	// waiting and running are the next list of a kind, and the one under way.
	waiting, running map[string]*list
}

type list struct {
	done      chan struct{}
	revisions []v1.PackageRevision
	err       error
}

// of gives all revisions of a kind, from a list that begins after the question. They
// are not to be changed.
func (l *lists) of(ctx context.Context, reader client.Reader, kind string) ([]v1.PackageRevision, error) {
	one := l.join(ctx, reader, kind)
	select {
	case <-one.done:
		return one.revisions, one.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *lists) join(ctx context.Context, reader client.Reader, kind string) *list {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting, l.running = map[string]*list{}, map[string]*list{}
	}
	one, before := l.waiting[kind], l.running[kind]
	if one == nil {
		one = &list{done: make(chan struct{})}
		l.waiting[kind] = one
		// It is nobody's own: who began it may leave before it ends.
		go l.run(context.WithoutCancel(ctx), reader, kind, one, before)
	}
	return one
}

func (l *lists) run(ctx context.Context, reader client.Reader, kind string, one, before *list) {
	if before != nil {
		<-before.done
	}
	l.mu.Lock()
	delete(l.waiting, kind)
	l.running[kind] = one
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	all := v1.NewPackage(kind).NewRevisionList()
	if one.err = reader.List(ctx, all); one.err == nil {
		one.revisions = all.Revisions()
	}
	l.mu.Lock()
	if l.running[kind] == one {
		delete(l.running, kind)
	}
	l.mu.Unlock()
	close(one.done)
}
