package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// slowly is a server that lists one revision for each list so far, and answers when it
// is told to.
type slowly struct {
	client.Reader
	asked  atomic.Int64
	begun  chan struct{}
	answer chan error
}

func (s *slowly) List(ctx context.Context, into client.ObjectList, _ ...client.ListOption) error {
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

// Many who ask at the same time are answered by two lists: the one that is under way
// when they ask is not theirs, since it may have begun before what they have to know.
func TestListsAreShared(t *testing.T) {
	s := &slowly{begun: make(chan struct{}, 8), answer: make(chan error)}
	var l lists
	first := l.join(t.Context(), s, v1.ProviderKind)
	<-s.begun
	var later []*list
	for range 50 {
		later = append(later, l.join(t.Context(), s, v1.ProviderKind))
	}
	s.answer <- nil
	<-s.begun
	s.answer <- nil
	<-first.done
	if n := len(first.revisions); n != 1 {
		t.Errorf("the first was answered by list %d", n)
	}
	for _, one := range later {
		<-one.done
		if n := len(one.revisions); n != 2 {
			t.Errorf("who asked later was answered by list %d, want the second", n)
		}
	}
	if n := s.asked.Load(); n != 2 {
		t.Errorf("%d lists, want 2", n)
	}
	if len(l.waiting)+len(l.running) != 0 {
		t.Errorf("lists are left: %v, %v", l.waiting, l.running)
	}
}

// A failure is that of all who share a list, and of nobody after them. Who leaves
// early leaves alone.
func TestListsFailTogether(t *testing.T) {
	s := &slowly{begun: make(chan struct{}, 8), answer: make(chan error)}
	var l lists
	first := l.join(t.Context(), s, v1.ProviderKind)
	<-s.begun
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := l.of(left, s, v1.ProviderKind); !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	second := l.join(t.Context(), s, v1.ProviderKind)
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
