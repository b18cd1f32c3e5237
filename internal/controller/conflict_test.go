package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// conflict is a round in which two packages that contain the same object are created at the same
// time. Each of them also contains an object of its own.
type conflict struct {
	group        string
	packages     [2]*v1.Provider
	winner, loss *v1.Provider
}

func (c *conflict) ownCRD(p *v1.Provider) string {
	return p.Name[strings.LastIndex(p.Name, "-")+1:] + "s." + c.group
}

// If two packages with the same object are created at the same time, one of them gets the object.
// No object of the other package is installed, its condition names the holder, and it takes over
// when the holder is deleted.
func TestOneOfTwoConcurrentPackagesGetsTheObject(t *testing.T) {
	const rounds = 20
	s := sharedEnv(t)
	r := newRegistry(t)
	made := watchCreations(t, s, ".contest.test")
	conflicts := make([]*conflict, rounds)
	for i := range conflicts {
		c := &conflict{group: fmt.Sprintf("r%d.contest.test", i)}
		for j, kind := range []string{"Left", "Right"} {
			name := fmt.Sprintf("contest-%d-%s", i, strings.ToLower(kind))
			ref, _ := r.push(t, "acme/"+name+":v1", provider(name, crd(c.group, "Shared", kind), crd(c.group, kind, kind)))
			c.packages[j] = env.NewProvider(name, ref)
		}
		conflicts[i] = c
	}
	createConcurrently(t, s, conflicts)
	for _, c := range conflicts {
		c.waitDecided(t, s)
		if made.contains(c.ownCRD(c.loss)) {
			t.Errorf("%s was refused, and a part of it was installed", c.loss.Name)
		}
		untilOwners(t, s, "shareds."+c.group, "Provider/"+c.winner.Name+"*")
	}
	// Nothing is decided anew.
	for _, c := range conflicts[:3] {
		waitReconciled(t, s.Env, c.packages[0], c.packages[1])
		s.WaitCondition(t, c.loss, v1.TypeHealthy, corev1.ConditionFalse, "belongs to")
		s.WaitHealthy(t, c.winner)
	}
	for _, c := range conflicts {
		if err := s.Client.Delete(t.Context(), c.winner); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range conflicts {
		untilSettled(t, s, c.loss)
		untilOwners(t, s, "shareds."+c.group, "Provider/"+c.loss.Name+"*")
	}
}

func createConcurrently(t *testing.T, s *testEnv, conflicts []*conflict) {
	t.Helper()
	start := make(chan struct{})
	var group sync.WaitGroup
	for _, c := range conflicts {
		for _, p := range c.packages {
			group.Go(func() {
				<-start
				if err := s.Client.Create(context.Background(), p); err != nil {
					t.Error(err)
				}
			})
			t.Cleanup(func() { _ = s.Client.Delete(context.Background(), p) })
		}
	}
	close(start)
	group.Wait()
}

// waitDecided waits until one package is installed and the other one reports the
// conflict.
func (c *conflict) waitDecided(t *testing.T, s *testEnv) {
	t.Helper()
	wait.Until(t, limit, "one package of "+c.group+" wins", func() (string, bool) {
		c.winner, c.loss = nil, nil
		seen := ""
		for _, p := range c.packages {
			if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
				return err.Error(), false
			}
			ready := p.GetCondition(v1.TypeReady)
			seen += fmt.Sprintf("%s %+v; ", p.Name, ready)
			switch {
			case ready.Status == corev1.ConditionTrue:
				c.winner = p
			case ready.Reason == "ForeignOwner":
				c.loss = p
			}
		}
		return seen, c.winner != nil && c.loss != nil
	})
	want := "CustomResourceDefinition shareds." + c.group + " belongs to Provider"
	if got := c.loss.GetCondition(v1.TypeHealthy).Message; !strings.Contains(got, want) ||
		!strings.Contains(got, c.winner.Name) {
		t.Errorf("%s lost against %s and reports: %s", c.loss.Name, c.winner.Name, got)
	}
}

// creations are the CRDs that were created during a watch.
type creations struct {
	mu    sync.Mutex
	names map[string]bool
}

func (c *creations) contains(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.names[name]
}

// watchCreations watches definitions whose names have an ending until the test ends.
func watchCreations(t *testing.T, s *testEnv, ending string) *creations {
	t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.APIVersion, list.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinitionList"
	w, err := s.Client.Watch(context.Background(), list)
	if err != nil {
		t.Fatal(err)
	}
	c := &creations{names: map[string]bool{}}
	var done sync.WaitGroup
	done.Go(func() {
		for e := range w.ResultChan() {
			o, ok := e.Object.(client.Object)
			if ok && e.Type == apiwatch.Added && strings.HasSuffix(o.GetName(), ending) {
				c.mu.Lock()
				c.names[o.GetName()] = true
				c.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		w.Stop()
		done.Wait()
	})
	return c
}
