package state

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// slowReader returns as many revisions as lists have begun, once the test sends a result.
type slowReader struct {
	client.Reader
	asked  atomic.Int64
	begun  chan struct{}
	answer chan error
}

func (s *slowReader) List(ctx context.Context, into client.ObjectList, _ ...client.ListOption) error {
	n := s.asked.Add(1)
	s.begun <- struct{}{}
	select {
	case err := <-s.answer:
		into.(*v1.ProviderRevisionList).Items = make([]v1.ProviderRevision, n)
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Concurrent callers share two lists. A list that is in progress when a caller arrives may have begun
// before the change that the caller needs to see, so its result is not used.
func TestConcurrentCallersShareLists(t *testing.T) {
	s := &slowReader{begun: make(chan struct{}, 8), answer: make(chan error)}
	l := &LiveRevisions{Reader: s}
	first := l.join(t.Context(), v1.ProviderKind)
	<-s.begun
	var later []*sharedList
	for range 50 {
		later = append(later, l.join(t.Context(), v1.ProviderKind))
	}
	s.answer <- nil
	<-s.begun
	s.answer <- nil
	<-first.done
	if n := len(first.revisions); n != 1 {
		t.Errorf("the first caller got list %d", n)
	}
	for _, one := range later {
		<-one.done
		if n := len(one.revisions); n != 2 {
			t.Errorf("a later caller got list %d, want the second", n)
		}
	}
	if n := s.asked.Load(); n != 2 {
		t.Errorf("%d lists, want 2", n)
	}
	if len(l.waiting)+len(l.running) != 0 {
		t.Errorf("lists are left: %v, %v", l.waiting, l.running)
	}
}

// All callers that share a list get its failure, and later callers do not. A caller that leaves
// early does not end the list.
func TestCallersOfAFailedListFailTogether(t *testing.T) {
	s := &slowReader{begun: make(chan struct{}, 8), answer: make(chan error)}
	l := &LiveRevisions{Reader: s}
	first := l.join(t.Context(), v1.ProviderKind)
	<-s.begun
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := l.list(left, v1.ProviderKind); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that left got %v", err)
	}
	second := l.join(t.Context(), v1.ProviderKind)
	refused := errors.New("refused")
	s.answer <- refused
	<-first.done
	<-s.begun
	s.answer <- nil
	<-second.done
	if !errors.Is(first.err, refused) || second.err != nil {
		t.Errorf("got %v and %v, want the first to be refused", first.err, second.err)
	}
	if n := s.asked.Load(); n != 2 {
		t.Errorf("%d lists, want 2", n)
	}
}
